// A thousand callers want the result of one key that nobody has made; the workload measures the time until all
// have it, and counts how often it is made.

package work

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Once is the name of the workload, and RunsPerKey its own figure.
const (
	Once       = "once"
	RunsPerKey = "runsPerKey"
)

// onceWork is how long the work for a key takes.
const onceWork = 20 * time.Millisecond

func onces() []Workload {
	const callers = 1000
	return []Workload{{
		Name: Once,
		Title: fmt.Sprintf("one key, work of %d ms, %d callers of %d clients in one process: until all have its result",
			onceWork.Milliseconds(), callers, processes),
		Processes:  1,
		Contenders: []string{peer.Holdfast, peer.RedsyncOnce, peer.RedsyncOnceTuned},
		Latency:    true,
		Window:     Window{Full: 2 * time.Second, Quick: 2 * time.Second},
		Run: func(ctx context.Context, s *Site) error {
			p, err := peer.Find(s.Contender)
			if err != nil {
				return err
			}
			clients := make([]peer.Once, processes)
			for i := range clients {
				clients[i] = p.Once(s.Addr)
				defer clients[i].Close()
			}
			r := onceRounds{clients: clients, callers: callers}
			return s.Loop(ctx, 1, func(int) Task {
				return func(ctx context.Context) (int64, error) {
					began := time.Now()
					err := r.next(ctx, s.Name)
					s.Meter.Took(time.Since(began))
					s.Meter.Set(RunsPerKey, float64(r.runs.Load())/float64(r.keys))
					return 1, err
				}
			})
		},
	}}
}

// onceRounds are rounds of all callers, each with a key of its own.
type onceRounds struct {
	clients []peer.Once
	callers int
	keys    int
	runs    atomic.Int64
}

// next has all callers get the result of one more key.
func (r *onceRounds) next(ctx context.Context, name string) error {
	r.keys++
	key := fmt.Sprint(name, ":", r.keys)
	want := strings.Repeat(key, 10)
	work := func() string {
		r.runs.Add(1)
		time.Sleep(onceWork)
		return want
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range r.callers {
		all.Go(func() {
			got, err := r.clients[i%len(r.clients)].Value(ctx, key, work)
			if err == nil && got != want {
				err = fmt.Errorf("the result of %s is %q", key, got)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
