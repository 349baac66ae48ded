// What --json prints is written down in docs/cli.md, field by field, and moves no terminal.

package cli

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The objects, by what the document calls them.
var objects = []struct {
	of     string
	object any
}{
	{"a name: `ls`, `inspect`, each `show` but that of `tick`", view.Inspection{}},
	{"`inspect`: those of a name, and", inspectJSON{}},
	{"a holder", view.HolderJSON{}},
	{"a waiter", view.WaiterJSON{}},
	{"a pause", view.PauseJSON{}},
	{"a release by force", audit.Record{}},
	{"an event: `watch`", eventJSON{}},
	{"`acquire`, `extend`", held{}},
	{"`release`", takenJSON{}},
	{"`tick show`", tickJSON{}},
}

// A field that is renamed, left out or of another type breaks the programs that read it: then this fails.
func TestTheDocumentHasEachFieldOfJSON(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/cli.md")
	redistest.Must(t, err)
	for _, o := range objects {
		var fields []string
		kind := reflect.TypeOf(o.object)
		for n := range kind.NumField() {
			if f := kind.Field(n); !f.Anonymous {
				fields = append(fields, field(f))
			}
		}
		if row := "| " + o.of + " | " + strings.Join(fields, ", ") + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("there is no row\n%s", row)
		}
	}
}

// field returns a field as the document has it.
func field(f reflect.StructField) string {
	name, left, _ := strings.Cut(f.Tag.Get("json"), ",")
	kind, many, null := f.Type, "", ""
	if kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8 {
		kind, many = kind.Elem(), "list of "
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
		null = " or null"
	}
	what := map[reflect.Kind]string{
		reflect.String: "text", reflect.Int: "number", reflect.Int64: "number", reflect.Float64: "number",
		reflect.Bool: "true or false", reflect.Slice: "base64",
	}[kind.Kind()]
	switch kind {
	case reflect.TypeFor[time.Time]():
		what = "time"
	case reflect.TypeFor[view.HolderJSON]():
		what = "a holder"
	case reflect.TypeFor[view.WaiterJSON]():
		what = "a waiter"
	case reflect.TypeFor[view.PauseJSON]():
		what = "a pause"
	case reflect.TypeFor[audit.Record]():
		what, null = "a release by force", " or null"
	}
	if article, plural := strings.CutPrefix(what, "a "); plural && many != "" {
		first, rest, _ := strings.Cut(article, " ")
		what = strings.TrimSpace(first + "s " + rest)
	}
	if left == "omitempty" {
		return "`" + name + "`? " + many + what
	}
	return "`" + name + "` " + many + what + null
}

func TestJSONMovesNoTerminal(t *testing.T) {
	odd := "a\x1b[2J\x7f\u0085\u009b31m\u202e\u2066\u200f\u061c\xffé日\u2028\"\\"
	line, err := view.Line(map[string]string{"who": odd})
	redistest.Must(t, err)
	for _, r := range strings.TrimSuffix(string(line), "\n") {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r) {
			t.Errorf("%U in %q", r, line)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(line, &back); err != nil || back["who"] != strings.ToValidUTF8(odd, "\ufffd") {
		t.Errorf("%q, %v", back["who"], err)
	}
	if !strings.Contains(string(line), "é日") {
		t.Errorf("plain text is escaped: %s", line)
	}
}
