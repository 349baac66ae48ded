// Goroutines contend for a read/write lock, and most of them want to read.

package work

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// ReadWrite is the name of the workload.
const ReadWrite = "read-write"

func readWrite() []Workload {
	const reads, goroutines = 95, 200
	return []Workload{{
		Name: ReadWrite,
		Title: fmt.Sprintf("read/write lock, %d of 100 are reads, %d goroutines in %d processes",
			reads, goroutines, processes),
		Processes:  processes,
		Contenders: []string{peer.Holdfast},
		Redisson:   redisson(interop.ReadWrite(reads, processes, goroutines)),
		Run: func(ctx context.Context, s *Site) error {
			client, closeAll := peer.NewClient(s.Addr)
			defer closeAll()
			lock := client.RWMutex(s.Name)
			read, write := peer.Locker{Locker: lock.RLocker()}, peer.Locker{Locker: lock.WLocker()}
			return s.Loop(ctx, s.Share(goroutines), func(int) Task {
				return func(ctx context.Context) (int64, error) {
					if rand.IntN(100) < reads {
						return 1, read.Pair(ctx, nil)
					}
					return 1, write.Pair(ctx, nil)
				}
			})
		},
	}}
}
