// The key and the channel of a limit.

package keys

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	limitPrefix        = "holdfast_limit"
	limitChannelPrefix = "holdfast_limit_channel"
)

// Limit holds the key and the channel of one limit.
type Limit struct {
	Key     string // what was taken, and by which rate: a string
	Channel string // on which a change of the rate is announced
}

// ForLimit returns the key and the channel of the limit of that name. It takes the names that ForLock takes.
func (s Space) ForLimit(name string) (Limit, error) {
	if err := s.Check(name); err != nil {
		return Limit{}, err
	}
	return Limit{Key: s.own(limitPrefix, name), Channel: s.own(limitChannelPrefix, name)}, nil
}

// LimitOf returns the name of the limit that the limiter of that name has for key, which may be any bytes,
// but not empty. Two pairs of a name and a key never have the same one.
func LimitOf(name, key string) (string, error) {
	if key == "" {
		return "", fmt.Errorf("the key is empty: %w", errs.BadArgument)
	}
	return name + ":" + escapeKey.Replace(key), nil
}
