// A neighbour is another client of the same server. The workload measures how long its PING takes
// beside pairs.

package work

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Neighbour is the name of the workload. A contender whose name ends with Resting leaves the server
// mostly idle: each of its goroutines rests after a pair. The others keep the server as busy as they
// can.
const (
	Neighbour = "neighbour"
	Resting   = ", with rests of 20 ms"

	rest = 20 * time.Millisecond
)

func neighbours() []Workload {
	const goroutines = 256
	return []Workload{{
		Name:       Neighbour,
		Title:      fmt.Sprintf("another client's PING, beside uncontended pairs of %d goroutines", goroutines),
		Processes:  2, // one process locks, the other sends PING
		Contenders: []string{peer.Holdfast, peer.RueidislockTuned, peer.Holdfast + Resting, peer.RueidislockTuned + Resting, Nothing},
		Window:     Window{Rounds: measure.LeastRounds},
		Idle:       true, // one contender does nothing
		Run: func(ctx context.Context, s *Site) error {
			switch {
			case s.Process == 1:
				return ping(ctx, s)
			case s.Contender == Nothing:
				s.Ready()
				<-ctx.Done()
				return nil
			}
			return lockBeside(ctx, s, goroutines)
		},
	}}
}

// lockBeside makes pairs, each goroutine with its own lock.
func lockBeside(ctx context.Context, s *Site, goroutines int) error {
	name, rests := strings.CutSuffix(s.Contender, Resting)
	library, err := peer.Find(name)
	if err != nil {
		return err
	}
	p, err := library.Open(s.Addr)
	if err != nil {
		return err
	}
	defer p.Close()
	return s.Loop(ctx, goroutines, func(i int) Task {
		lock := p.Lock(fmt.Sprintf("%s:%d", s.Name, i))
		return func(ctx context.Context) (int64, error) {
			err := lock.Pair(ctx, nil)
			if rests {
				time.Sleep(rest/2 + rand.N(rest))
			}
			return 1, err
		}
	})
}
