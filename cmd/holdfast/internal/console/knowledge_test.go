// What a hub knows after each look: not known is not free, and old is not known.

package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
)

func TestWhatIsKnownAfterEachLook(t *testing.T) {
	begun := time.Now()
	sees := func(second int, names string) (states []holdfast.Inspection) {
		for _, name := range strings.Fields(names) {
			at := begun.Add(time.Duration(second) * time.Second)
			states = append(states, holdfast.Inspection{Name: name, Kind: holdfast.KindMutex, At: at})
		}
		return states
	}
	failed := errors.New("refused")
	for _, c := range []struct {
		what  string
		looks []observe.Change // those without anything begin the looks anew
		want  string           // how far all is known; then a and b: how far each is known, and what it is
	}{
		{"nobody has looked", nil, "unknown: a unknown, b unknown"},
		{"the first look fails", []observe.Change{{Err: failed}}, "unknown: a unknown, b unknown"},
		{"it sees one", []observe.Change{{States: sees(1, "a")}}, "known: a known mutex, b known free"},
		{"it sees none", []observe.Change{{States: sees(1, "")}}, "known: a known free, b known free"},
		{"the next one fails", []observe.Change{
			{States: sees(1, "a")}, {States: sees(1, "a"), Err: failed},
		}, "old: a old mutex, b old free"},
		{"the next one sees some", []observe.Change{
			{States: sees(1, "a c")}, {States: append(sees(1, "a"), sees(2, "c")...), Err: failed},
		}, "partly: a old mutex, b unknown"},
		{"the first one sees some", []observe.Change{{States: sees(1, "a"), Err: failed}}, "partly: a known mutex, b unknown"},
		{"looks begin anew", []observe.Change{{States: sees(1, "a")}, {}}, "old: a old mutex, b old free"},
		{"looks begin anew, and fail", []observe.Change{
			{States: sees(1, "a")}, {}, {Err: failed},
		}, "old: a old mutex, b old free"},
		{"looks begin anew before any has seen anything", []observe.Change{{Err: failed}, {}}, "unknown: a unknown, b unknown"},
		{"it is seen again", []observe.Change{
			{States: sees(1, "a")}, {States: sees(1, "a"), Err: failed}, {States: sees(2, "b")},
		}, "known: a known free, b known mutex"},
	} {
		m := moment{how: unknown}
		for _, look := range c.looks {
			if look.Err == nil && look.States == nil && look.Missed == 0 && len(c.looks) > 1 {
				m = m.resumed()
				continue
			}
			m = m.after(look)
		}
		got := string(m.how) + ":"
		for _, name := range []string{"a", "b"} {
			i, how := m.of(name)
			got += fmt.Sprintf(" %s %s", name, how)
			if how != unknown {
				got += " " + string(i.Kind)
			}
			got += ","
		}
		if got = strings.TrimSuffix(got, ","); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
