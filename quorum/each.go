// How several servers are asked at the same time, and how long that waits for each.

package quorum

import (
	"context"
	"time"
)

const (
	// longestTry is the longest that a round waits for a server. If leases are short it waits less:
	// a tenth of the longest lease.
	longestTry = 500 * time.Millisecond
	// grace is how long at least a round still waits for the rest when it is decided. A
	// healthy server has answered by then, and each additional member that is held can make up for
	// one that is lost later.
	grace = 10 * time.Millisecond
)

// patience returns how long one round waits for a server.
func (q *Quorum) patience() time.Duration { return min(q.longest/10, longestTry) }

// each calls do for each of some things, all at the same time, and returns the results when all
// calls have returned. The context of the calls ends when patience is over. Once enough says that
// the results so far are enough, it ends after as long again as these took, but no sooner than after
// grace; enough is not asked again then.
func each[A, B any](ctx context.Context, of []A, patience time.Duration, do func(context.Context, A) B, enough func(come []B) bool) []B {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type result struct {
		i int
		b B
	}
	began, results := time.Now(), make(chan result, len(of))
	for i, a := range of {
		go func() { results <- result{i, do(ctx, a)} }()
	}
	all, come := make([]B, len(of)), make([]B, 0, len(of))
	decided := false
	for range of {
		r := <-results
		all[r.i], come = r.b, append(come, r.b)
		if !decided && enough(come) {
			decided = true
			stop := time.AfterFunc(max(grace, time.Since(began)), cancel)
			defer stop.Stop()
		}
	}
	return all
}

// allOf is the enough of an each that needs the result of everyone.
func allOf[B any]([]B) bool { return false }

func count[T any](things []T, so func(T) bool) (n int) {
	for _, t := range things {
		if so(t) {
			n++
		}
	}
	return n
}
