// This workload shows what stripes gain where the work under a lock takes a millisecond.

package work

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Stripes is the name of the workload. Its contenders are the ways to lock.
const (
	Stripes       = "stripes"
	OneStripe     = "one lock"
	ManyStripes   = "16 stripes"
	SkewedStripes = "16 stripes, skewed keys"
)

func stripes() []Workload {
	const (
		workers   = 256 // so many that every stripe is always wanted
		processes = 4
		keys      = 10_000
	)
	return []Workload{{
		Name:       Stripes,
		Title:      "1 ms of work under the lock of a key, 256 goroutines in 4 processes",
		Processes:  processes,
		Contenders: []string{OneStripe, ManyStripes, SkewedStripes},
		Run: func(ctx context.Context, s *Site) error {
			client, closeAll := peer.NewClient(s.Addr)
			defer closeAll()
			n := 16
			if s.Contender == OneStripe {
				n = 1
			}
			striped := client.Striped(s.Name, n)
			return s.Loop(ctx, s.Share(workers), func(i int) Task {
				r := rand.New(rand.NewPCG(uint64(s.Process), uint64(i)))
				// A few keys have most of the use; the first key has 19 % of it.
				zipf := rand.NewZipf(r, 1.2, 1, keys-1)
				work, err := newPause()
				return func(ctx context.Context) (int64, error) {
					if err != nil {
						return 0, err
					}
					key := r.Uint64N(keys)
					if s.Contender == SkewedStripes {
						key = zipf.Uint64()
					}
					lock := peer.Locker{Locker: striped.For(strconv.FormatUint(key, 10))}
					var interrupted error
					err := lock.Pair(ctx, func() { interrupted = work.wait(time.Millisecond) })
					return 1, errors.Join(err, interrupted)
				}
			})
		},
	}}
}
