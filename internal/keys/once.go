// The keys of work that is done once: for a key of a Once, and for a tick.

package keys

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	oncePrefix        = "holdfast_once"
	onceTokenPrefix   = "holdfast_once_token"
	onceChannelPrefix = "holdfast_once_channel"
	tickPrefix        = "holdfast_tick"
)

// Once holds the keys and the channel of one key of a Once.
type Once struct {
	Whole   string // the name of the Once and the key, as one name
	Record  string // who does the work, or its result: a hash
	Token   string // the last fencing token that was given
	Channel string // on which the end of the work is announced
}

// escapeKey makes the last colon of a whole name the one between the name and the key.
var escapeKey = strings.NewReplacer("%", "%25", ":", "%3A")

// ForOnce returns the keys and the channel of a key of the Once of that name. The key may be any
// bytes, but not empty. Two pairs of a name and a key never have the same whole name.
func (s Space) ForOnce(name, key string) (Once, error) {
	if err := s.Check(name); err != nil {
		return Once{}, err
	}
	if key == "" {
		return Once{}, fmt.Errorf("the key is empty: %w", errs.BadArgument)
	}
	whole := name + ":" + escapeKey.Replace(key)
	return Once{
		Whole:   whole,
		Record:  s.own(oncePrefix, whole),
		Token:   s.own(onceTokenPrefix, whole),
		Channel: s.own(onceChannelPrefix, whole),
	}, nil
}

// OnceRecordAt returns the record of the key of a Once with that whole name, which has been checked.
func (s Space) OnceRecordAt(whole string) string { return s.own(oncePrefix, whole) }

// ForTick returns the key that says who has won the tick of that name at that time.
func (s Space) ForTick(name string, at time.Time) (string, error) {
	if err := s.Check(name); err != nil {
		return "", err
	}
	return s.own(tickPrefix, name) + ":" + at.UTC().Format(time.RFC3339Nano), nil
}
