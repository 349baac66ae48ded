// A rate: how many units in which time, and how many at once.

package limiter

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// longest is the most time that an empty limit may take to be full again: up to it times in a
// script are exact.
const longest = 366 * 24 * time.Hour

// ever is the longest debt that a script answers, in microseconds: 285 years. A debt may be longer: see state.lua.
const ever = 1 << 53

// rate is a rate as the scripts have it.
type rate struct {
	count  int64 // units
	period int64 // in microseconds
	burst  int64 // units
	rev    int64 // when it was set by Set, in microseconds of the server's clock; 0: an option
}

// String returns the rate as it is stored in Redis.
func (r rate) String() string { return r.unset() + " " + strconv.FormatInt(r.rev, 10) }

// unset returns the rate as it is stored in Redis, without its rev.
func (r rate) unset() string {
	return strconv.FormatInt(r.count, 10) + " " + strconv.FormatInt(r.period, 10) + " " + strconv.FormatInt(r.burst, 10)
}

// unit returns the time of one unit, in microseconds.
func (r rate) unit() float64 { return float64(r.period) / float64(r.count) }

// of returns the time of n units, rounded up; at most ever.
func (r rate) of(n int64) time.Duration {
	return time.Duration(min(math.Ceil(float64(n)*r.unit()), ever)) * time.Microsecond
}

// whole returns the time of the burst.
func (r rate) whole() time.Duration { return r.of(r.burst) }

// rateOf returns the rate of n units per d, with that burst.
func rateOf(n int, d time.Duration, burst int) (rate, error) {
	r := rate{count: int64(n), period: d.Microseconds(), burst: int64(burst)}
	switch {
	case n < 1 || d < time.Microsecond || d > longest:
		return r, fmt.Errorf("a rate of %d per %v: %w", n, d, errs.BadArgument)
	case r.count > r.period:
		return r, fmt.Errorf("a rate of %d per %v is more than a million a second: %w", n, d, errs.BadArgument)
	case burst < 1 || float64(burst)*r.unit() > float64(longest.Microseconds()):
		return r, fmt.Errorf("a burst of %d at %d per %v: %w", burst, n, d, errs.BadArgument)
	}
	return r, nil
}
