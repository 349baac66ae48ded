// These tests show which texts parse as owners, and that an owner prints the same text again.

package lease

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// newOwner returns the owner with that number of that client.
func newOwner(client string, id int64) Owner { return Owner(hold.NewOwner(client, id)) }

const someClient = "6e0e2d3c-1b2a-4c3d-8e4f-001122334455"

func TestParseOwnerRefuses(t *testing.T) {
	for _, s := range []string{
		"", ":", "1", someClient, someClient + ":", someClient + ":x", someClient + ":1 ", someClient + ":+1",
		someClient + ":01", someClient + ":-0", someClient + ":1:2", someClient + ":9223372036854775808",
		":" + someClient, someClient[1:] + ":1", "{" + someClient + "}:1", "urn:uuid:" + someClient + ":1",
		strings.ReplaceAll(someClient, "-", "") + ":1", strings.Repeat("x", 36) + ":1", someClient + ":1\n",
	} {
		o, err := ParseOwner(s)
		if !errors.Is(err, errs.BadArgument) || !o.IsZero() {
			t.Errorf("%q: %v, %v", s, o, err)
		}
		if err != nil && len(s) > 8 && strings.Contains(err.Error(), s) {
			t.Errorf("%q tells what may be a secret", err)
		}
	}
}

func TestOwnerShort(t *testing.T) {
	o := newOwner(someClient, 37)
	redistest.Equal(t, o.Short(), "6e0e2d3c…:37", "short %q")
	if _, err := ParseOwner(o.Short()); err == nil {
		t.Error("the short form parses")
	}
	var nobody Owner
	if nobody.String() != "" || nobody.Short() != "nobody" || !nobody.IsZero() {
		t.Errorf("nobody is %q, %q", nobody.String(), nobody.Short())
	}
}

func FuzzParseOwner(f *testing.F) {
	for _, s := range []string{"", someClient + ":1", someClient + ":-9223372036854775808", someClient + ":9223372036854775807", someClient + ":0", someClient + ":-1", someClient + ":01", strings.ToUpper(someClient) + ":7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseOwner(s)
		if err != nil {
			if !errors.Is(err, errs.BadArgument) || !o.IsZero() {
				t.Errorf("%q: %v, %v", s, o, err)
			}
			return
		}
		if o.String() != s || o.IsZero() {
			t.Errorf("%q prints as %q", s, o)
		}
		if again, err := ParseOwner(o.String()); err != nil || again != o {
			t.Errorf("%q: %v, %v", s, again, err)
		}
	})
}
