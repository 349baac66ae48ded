// The fair lock under a crowd, of different sizes.

package work

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// Fair is the name of the workload with so many waiters.
func Fair(waiters int) string { return fmt.Sprintf("fair/%d", waiters) }

// FairOf are the numbers of waiters that there are workloads for.
var FairOf = []int{10, 100, 1000, 5000}

// processes is what a crowd is spread over, unless the workload is about that.
const processes = 8

func fair() []Workload {
	var all []Workload
	for _, waiters := range FairOf {
		w := Workload{
			Name:       Fair(waiters),
			Title:      fmt.Sprintf("fair lock, %d waiters in %d processes", waiters, processes),
			Processes:  processes,
			Contenders: []string{peer.Holdfast},
			Run: func(ctx context.Context, s *Site) error {
				client, closeAll := peer.NewClient(s.Addr)
				defer closeAll()
				lock := peer.Locker{Locker: client.FairMutex(s.Name)}
				return s.Locks(ctx, s.Share(waiters), func(int) peer.Lock { return lock }, nil)
			},
		}
		if waiters == 1000 {
			w.Redisson = func(ctx context.Context, b interop.Bench, d time.Duration) (interop.Result, error) {
				b.Clients = processes
				return b.FairLock(ctx, waiters, d)
			}
		}
		all = append(all, w)
	}
	return all
}
