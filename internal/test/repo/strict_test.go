// Some servers check a script before they run it. These tests read every script as they do: each
// file, each script as it is sent, and its quiet form.

package repo

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/strict"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// undeclared says how many commands of a script are about keys that are not among its KEYS, and
// why. Decision 0065 has the whole story.
var undeclared = map[string]struct {
	commands int
	why      string
}{
	"rwlock/lua/left.lua":             {2, "the keys of readers that only the lock's hash names"},
	"rwlock/lua/rlock.lua":            {2, "the reader's own key"},
	"rwlock/lua/rrecount.lua":         {4, "the reader's own keys"},
	"rwlock/lua/rrenew.lua":           {1, "the reader's own keys"},
	"rwlock/lua/rrelease.lua":         {1, "the reader's own keys"},
	"internal/inspect/lua/beside.lua": {14, "what may stand beside a name: it may be out of reach, and is not needed"},
}

func TestEachScriptNamesItsCommandsAndKeys(t *testing.T) {
	files := filesBelow(t, ".", ".lua")
	if len(files) < 40 {
		t.Fatalf("only %d scripts found", len(files))
	}
	for _, file := range files {
		if strings.HasPrefix(file, "cmd/") {
			continue // an operator's program, which needs no strict server
		}
		wantStrict(t, read(t, file, doctest.Read(t, file)), file)
	}
}

// Each script as it is sent, and its quiet form.
func TestEachScriptIsSentAsStrictServersWant(t *testing.T) {
	quiet := 0
	for _, s := range world.Scripts(t) {
		loud := read(t, s.Name(), s.Source())
		wantStrict(t, loud, s.Files...)
		if speaks := len(loud.PubSub) > 0; speaks != (s.Quiet() != "") {
			t.Errorf("%s runs commands of Pub/Sub: %v; it has a quiet form: %v", s.Name(), speaks, !speaks)
		}
		silent := loud
		if s.Quiet() != "" {
			quiet++
			silent = read(t, s.Name()+", quiet", s.Quiet())
			wantStrict(t, silent, s.Files...)
		}
		for _, what := range silent.Spoken {
			t.Errorf("names a command of Pub/Sub: %s", what)
		}
	}
	if quiet < 14 {
		t.Errorf("only %d scripts have a quiet form", quiet)
	}
}

// wantStrict fails the test if a script has findings, but for the undeclared keys that its files may
// have.
func wantStrict(t *testing.T, f strict.Findings, files ...string) {
	t.Helper()
	for _, what := range slices.Concat(f.Loose, f.Nested, f.Unpacks, f.Hidden) {
		t.Error(what)
	}
	allowed := 0
	for _, file := range files {
		allowed += undeclared[file].commands
	}
	if len(f.Keyless) != allowed {
		t.Errorf("%d commands about keys that are not written KEYS[...], want %d:\n%s",
			len(f.Keyless), allowed, strings.Join(f.Keyless, "\n"))
	}
}

// read reads a script.
func read(t *testing.T, name, source string) strict.Findings {
	t.Helper()
	f, err := strict.Read(name, source)
	if err != nil {
		t.Fatalf("%s is not Lua: %v", name, err)
	}
	return f
}

func TestALooseCommandIsFound(t *testing.T) {
	for source, want := range map[string]string{
		"redis.call('GET', KEYS[1])":                                       "",
		"for k = 1, #KEYS do redis.pcall('DEL', KEYS[k]) end":              "",
		"return {redis.call('TIME')[1], redis.pcall('PUBLISH', 'c', 1)}":   "pubsub spoken",
		"if redis.call(ARGV[1], KEYS[1]) then return 1 end":                "loose",
		"local key = KEYS[1] return 1 + redis.call('GET', key)":            "keyless",
		"local f = function() return not redis.call('GET', ARGV[1]) end":   "keyless",
		"local c = redis.call c('GET', KEYS[1])":                           "loose",
		"redis.call('SET', KEYS[1], tonumber(redis.call('GET', KEYS[2])))": "nested",
		"redis.call('DEL', KEYS[1], unpack(ARGV))":                         "unpacks",
		"local function f() end if 1 then local function f() end end":      "hidden",
		"local n = 1 -- as a Subscriber does":                              "spoken",
	} {
		f := read(t, "a.lua", source)
		var got []string
		for _, kind := range []struct {
			name  string
			found []string
		}{
			{"loose", f.Loose}, {"keyless", f.Keyless}, {"nested", f.Nested}, {"unpacks", f.Unpacks},
			{"pubsub", f.PubSub}, {"spoken", f.Spoken}, {"hidden", f.Hidden},
		} {
			if len(kind.found) > 0 {
				got = append(got, kind.name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\nfound %v, want %q", source, got, want)
		}
	}
}
