// Small calls are reused when nobody has them.

package call

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// A call that is given back to the pool keeps nothing of its last use. If the reply to one of its
// requests was not heard, the pool does not take the call back, and the call keeps its values.
func TestSmallsAreTakenBackWhenNobodyHasThem(t *testing.T) {
	var smalls Smalls
	script := NewScript("s", "return {1, 1}")
	for _, unheard := range []bool{false, true} {
		c := smalls.Get(script, "key", "beside")
		c.SetText(0, "text")
		c.SetNumber(1, 7)
		c.outstanding = unheard
		smalls.Put(&c.Call)
		if kept := c.Script == script && c.Keys[1] == "beside" && *c.Args[0].(*string) == "text" && *c.Args[1].(*int64) == 7; kept != unheard {
			t.Errorf("a sending unheard: %v; as it was: %v", unheard, kept)
		}
	}
	smalls.Put(&Call{Script: script}) // this call is no Small
	if c := smalls.Get(script, "a", "b"); c.Keys[0] != "a" || c.Args[0] != nil || c.outstanding {
		t.Errorf("%+v", c)
	}
}

func TestTheDocumentsSayHowLongARequestIsGood(t *testing.T) {
	doctest.Says(t, Window, "docs/guarantees.md", "not-after on the server's clock, {} after its sending")
	doctest.Says(t, Window, "docs/architecture.md", "It is {} after the sending at the latest")
}
