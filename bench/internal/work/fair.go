// These workloads put crowds of different sizes on the fair lock.

package work

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// Fair returns the name of the workload with that many waiters.
func Fair(waiters int) string { return fmt.Sprintf("fair/%d", waiters) }

// FairOf lists for how many waiters there is a workload.
var FairOf = []int{10, 100, 1000, 5000}

// A crowd is spread over this many processes, unless the workload is about the number of processes.
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
		if waiters == 5000 {
			w.Window.Full = 3 * time.Second // a few grants for each
		}
		if waiters == 1000 {
			w.Redisson = redisson(interop.FairLock(processes, waiters))
		}
		all = append(all, w)
	}
	return all
}
