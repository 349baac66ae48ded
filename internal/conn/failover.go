// Behind Sentinel: another server may be the master while every connection to the
// former one goes on.

package conn

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinelAddr is the address that go-redis gives a client whose dialer asks the
// Sentinels.
const sentinelAddr = "FailoverClient"

const (
	// askEvery is how often the Sentinels are asked for the master while the lane
	// is in use. A former master that can still be reached is told by them, after
	// some 10 s, that it is none; until then it grants what will be thrown away.
	askEvery = time.Second
	// askPatience is how long a call waits for the answer, if the last one is old.
	askPatience = 100 * time.Millisecond
)

// failover is single behind Sentinel: it asks where a new connection would lead,
// and drops those that lead elsewhere.
type failover struct {
	single
	ctx    context.Context // ends at close
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu       sync.Mutex // guards what follows
	asked    time.Time  // when the last question went out
	answered time.Time
	question chan struct{} // closed when the question under way has ended; nil if none is
	closed   bool
}

func newFailover(options *redis.Options) *failover {
	f := &failover{single: single{newLane(options.Addr, options)}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

func (f *failover) lane(ctx context.Context, _ string) (*lane, error) {
	if question := f.ask(); question != nil {
		patience := time.NewTimer(askPatience)
		defer patience.Stop()
		select {
		case <-question:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	return f.only, nil
}

func (f *failover) known(string) *lane {
	if f.ask() != nil {
		return nil
	}
	return f.only
}

func (f *failover) at(string) *lane {
	f.ask()
	return f.only
}

// ask asks, in the background, if the last question was long ago. It returns
// what to wait for if the last answer is so old that a call should.
func (f *failover) ask() (question <-chan struct{}) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.asked) >= askEvery && f.question == nil && !f.closed {
		f.asked, f.question = now, make(chan struct{})
		f.asking.Go(f.follow)
	}
	if now.Sub(f.answered) < 2*askEvery || now.Sub(f.asked) >= askPatience {
		return nil
	}
	return f.question
}

// follow finds out where a new connection leads.
func (f *failover) follow() {
	ctx, cancel := context.WithTimeout(f.ctx, dialTimeout)
	defer cancel()
	options := f.only.options
	conn, err := within(ctx, options.Network, options.Addr, options.Dialer)
	if err == nil {
		f.only.leadsTo(conn.RemoteAddr())
		drop(conn)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.answered = time.Now()
	}
	close(f.question)
	f.question = nil
}

func (f *failover) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.asking.Wait()
	f.single.close()
}

// leadsTo puts the lane's connections in doubt unless all lead to that address.
func (l *lane) leadsTo(master net.Addr) {
	for _, at := range l.remotes() {
		if at.String() != master.String() {
			l.doubt()
			return
		}
	}
}

// remotes returns where the lane's connections lead.
func (l *lane) remotes() []net.Addr {
	var all []net.Addr
	for _, each := range l.siblings() {
		each.mu.Lock()
		for _, w := range append(slices.Clone(each.wires), each.renewals.idle, each.renewals.used) {
			if w != nil {
				all = append(all, w.conn.RemoteAddr())
			}
		}
		each.mu.Unlock()
	}
	return all
}
