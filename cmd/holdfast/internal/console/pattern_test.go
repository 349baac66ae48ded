// The pattern is a bound: for looks and for releases.

package console

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestNamesOutsideOfThePatternAreRefused(t *testing.T) {
	var lines []string
	s := serve(t, func(o *Options) {
		o.Pattern = "orders:*"
		o.Say = func(line string) { lines = append(lines, line) }
		o.Release = func(_ context.Context, name, _, _ string, _ func(Holders) error) (Holders, error) {
			if name != "orders:42" {
				t.Errorf("%q was released", name)
			}
			return nil, nil
		}
	})
	csrf := header("X-Holdfast-CSRF", s.csrf)
	for name, want := range map[string]int{"orders:42": 200, "other:1": 403, "xorders:1": 403, "ORDERS:1": 403, "\x1b[2J": 403} {
		body, _ := json.Marshal(wanted{ID: escaped(name), Typed: name})
		for what, got := range map[string]int{
			"its page":   ask(s, "GET", "/lock/"+escaped(name), "").Code,
			"by a query": ask(s, "GET", "/lock?name="+escaped(name), "").Code,
			"a release":  ask(s, "POST", "/release", string(body), csrf).Code,
		} {
			if got != want {
				t.Errorf("%q, %s: %d, want %d", name, what, got, want)
			}
		}
		if want != 200 { // the stream of a name within does not end
			if w := ask(s, "GET", "/events/lock?name="+escaped(name), ""); w.Code != want {
				t.Errorf("%q, a look: %d, want %d", name, w.Code, want)
			}
		}
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "refused: a release of other:1") || strings.Contains(text, "\x1b") {
		t.Errorf("it prints\n%s", text)
	}
}
