package lockhash

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/line"
)

// A message of another form, as a later version or another program may send it, hands nothing over.
func TestHandOver(t *testing.T) {
	for message, want := range map[string]line.HandOver{
		"101 7 2500":   {Owner: 101, Token: 7, Left: 2500 * time.Millisecond},
		"0":            {},
		"00":           {},
		"":             {},
		"101 7":        {},
		"101 7 2500 1": {},
		"101 7 2500 ":  {},
		"101 7 soon":   {},
	} {
		if got := new(Queue).HandOver(message); got != want {
			t.Errorf("%q hands over %+v, want %+v", message, got, want)
		}
	}
}
