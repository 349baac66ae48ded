// Some servers check a script before they run it: Alibaba's cluster refuses one whose commands are
// not literals or whose keys are not written KEYS[...], and Dragonfly refuses keys that are not
// declared. This test reads every script by that rule.

package repo

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// undeclared says how many commands of a script are about keys that are not among its KEYS, and
// why. Decision 0056 has the whole story.
var undeclared = map[string]struct {
	commands int
	why      string
}{
	"rwlock/lua/holders.lua":           {2, "the keys of readers that only the lock's hash names"},
	"rwlock/lua/rlock.lua":             {2, "the reader's own key"},
	"rwlock/lua/rrecount.lua":          {4, "the reader's own keys"},
	"rwlock/lua/rrenew.lua":            {1, "the reader's own keys"},
	"rwlock/lua/rrelease.lua":          {1, "the reader's own keys"},
	"internal/inspect/lua/inspect.lua": {7, "what may stand beside a name: it may be out of reach, and is not needed"},
}

// channels are the commands whose first argument is a channel, or no key.
var channels = []string{"TIME", "PUBLISH", "SPUBLISH", "PUBSUB"}

func TestEachScriptNamesItsCommandsAndKeys(t *testing.T) {
	files := luaFiles(t)
	if len(files) < 40 {
		t.Fatalf("only %d scripts found", len(files))
	}
	for _, file := range files {
		loose, keyless := looseCommands(t, file, doctest.Read(t, file))
		for _, what := range loose {
			t.Error(what)
		}
		if allowed := undeclared[file].commands; len(keyless) != allowed {
			t.Errorf("%s: %d commands about keys that are not written KEYS[...], want %d:\n%s",
				file, len(keyless), allowed, strings.Join(keyless, "\n"))
		}
	}
}

func TestALooseCommandIsFound(t *testing.T) {
	for source, want := range map[string][2]int{
		"redis.call('GET', KEYS[1])":                                     {0, 0},
		"for k = 1, #KEYS do redis.pcall('DEL', KEYS[k]) end":            {0, 0},
		"return {redis.call('TIME')[1], redis.pcall('PUBLISH', 'c', 1)}": {0, 0},
		"if redis.call(ARGV[1], KEYS[1]) then return 1 end":              {1, 0},
		"local key = KEYS[1] return 1 + redis.call('GET', key)":          {0, 1},
		"local f = function() return not redis.call('GET', ARGV[1]) end": {0, 1},
		"local c = redis.call c('GET', KEYS[1])":                         {1, 0},
	} {
		loose, keyless := looseCommands(t, "a.lua", source)
		if len(loose) != want[0] || len(keyless) != want[1] {
			t.Errorf("%s\nloose %q, keyless %q, want %v", source, loose, keyless, want)
		}
	}
}

// luaFiles returns the scripts of the library, as paths from the root.
func luaFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*/lua/*.lua", "internal/*/lua/*.lua"} {
		found, err := fs.Glob(os.DirFS("."), pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// looseCommands returns the places in a script at which a command is not a literal, and those at
// which a command's first key is not written KEYS[...].
func looseCommands(t *testing.T, file, source string) (loose, keyless []string) {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(source), file)
	if err != nil {
		t.Fatal(err)
	}
	called := map[*ast.AttrGetExpr]bool{}
	visit(reflect.ValueOf(chunk), func(node any) {
		call, ok := node.(*ast.FuncCallExpr)
		if !ok {
			return
		}
		to, ok := call.Func.(*ast.AttrGetExpr)
		if !ok || !runsCommands(to) {
			return
		}
		called[to] = true
		at := fmt.Sprintf("%s:%d", file, call.Line())
		command, ok := call.Args[0].(*ast.StringExpr)
		switch {
		case !ok:
			loose = append(loose, at+": the command is not a literal")
		case slices.Contains(channels, command.Value):
		case len(call.Args) < 2 || !isKey(call.Args[1]):
			keyless = append(keyless, at+": "+command.Value)
		}
	})
	visit(reflect.ValueOf(chunk), func(node any) {
		if to, ok := node.(*ast.AttrGetExpr); ok && runsCommands(to) && !called[to] {
			loose = append(loose, fmt.Sprintf("%s:%d: redis.call under another name", file, to.Line()))
		}
	})
	return loose, keyless
}

// runsCommands reports whether e is redis.call or redis.pcall.
func runsCommands(e *ast.AttrGetExpr) bool {
	object, ok := e.Object.(*ast.IdentExpr)
	name, named := e.Key.(*ast.StringExpr)
	return ok && named && object.Value == "redis" && (name.Value == "call" || name.Value == "pcall")
}

// isKey reports whether e is written KEYS[...].
func isKey(e ast.Expr) bool {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	object, ok := get.Object.(*ast.IdentExpr)
	return ok && object.Value == "KEYS"
}

// visit calls see with every node of a syntax tree.
func visit(v reflect.Value, see func(node any)) {
	switch v.Kind() {
	case reflect.Interface:
		visit(v.Elem(), see)
	case reflect.Pointer:
		if !v.IsNil() {
			see(v.Interface())
			visit(v.Elem(), see)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), see)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visit(v.Field(i), see)
			}
		}
	}
}
