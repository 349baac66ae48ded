// In a hand-off one process holds the lock and another waits for it; the workload measures the time
// from the release in the first process to the grant in the second.

package work

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// HandOff is the name of the workload. Message is the contender that only sends a message from one
// process to the other.
const (
	HandOff = "hand-off"
	Message = "PUBLISH and a subscriber"
)

func handOff() []Workload {
	return []Workload{{
		Name:       HandOff,
		Title:      "hand-off from a holder to a waiter in another process",
		Processes:  2,
		Contenders: slices.Concat([]string{peer.Holdfast}, peer.Without(), []string{Message}),
		Latency:    true,
		Window:     Window{Full: 2 * time.Second, Quick: time.Second},
		Redisson:   redisson(interop.HandOff()),
		Run: func(ctx context.Context, s *Site) error {
			lock, closeAll, err := s.handOffLock(ctx)
			if err != nil {
				return err
			}
			defer closeAll()
			return s.handOver(ctx, lock, 15*time.Millisecond)
		},
	}}
}

// handOver has process 0 hand the lock to process 1, over and over. The waiter waits for that long, or up to
// twice as long.
func (s *Site) handOver(ctx context.Context, lock peer.Lock, wait time.Duration) error {
	other, err := s.meet(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	defer context.AfterFunc(ctx, func() { other.Close() })()
	if s.Process == 0 {
		return give(ctx, s, lock, other, wait)
	}
	return take(ctx, s, lock, other)
}

// handOffLock returns the lock that one process hands to the other, and a function that closes it.
func (s *Site) handOffLock(ctx context.Context) (peer.Lock, func(), error) {
	if s.Contender != Message {
		p, err := s.Open()
		if err != nil {
			return nil, nil, err
		}
		return p.Lock(s.Name), p.Close, nil
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	if s.Process == 0 {
		return sends{rdb, s.Name}, func() { rdb.Close() }, nil
	}
	sub := rdb.Subscribe(ctx, s.Name)
	end := context.AfterFunc(ctx, func() { sub.Close() }) // ReceiveMessage ignores the end of ctx
	_, err := sub.Receive(ctx)                            // the confirmation
	return hears{sub}, func() { end(); sub.Close(); rdb.Close() }, err
}

// sends is no lock: it sends a message at the moment when a lock would be released.
type sends struct {
	rdb  *redis.Client
	name string
}

// Pair implements peer.Lock.
func (l sends) Pair(ctx context.Context, work func()) error {
	work()
	return l.rdb.Publish(ctx, l.name, "").Err()
}

// hears is no lock either: it waits for a message where a waiter would wait for a lock.
type hears struct{ sub *redis.PubSub }

// Pair implements peer.Lock.
func (l hears) Pair(ctx context.Context, work func()) error {
	if _, err := l.sub.ReceiveMessage(ctx); err != nil {
		return err
	}
	work()
	return nil
}

// meet connects the two processes of the run.
func (s *Site) meet(ctx context.Context) (net.Conn, error) {
	address := filepath.Join(s.Dir, "meet")
	if s.Process == 0 {
		l, err := net.Listen("unix", address)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		defer context.AfterFunc(ctx, func() { l.Close() })()
		return l.Accept()
	}
	for {
		conn, err := net.Dial("unix", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(10 * time.Millisecond): // the other process has not begun
		}
	}
}

// give takes the lock, and tells the other process to wait for it. When the other process has begun
// to wait, give releases the lock. The time until the release varies, so that no poll is in step
// with it.
func give(ctx context.Context, s *Site, lock peer.Lock, taker net.Conn, wait time.Duration) error {
	answers := bufio.NewReader(taker)
	return s.Loop(ctx, 1, func(int) Task {
		return func(ctx context.Context) (int64, error) {
			var released time.Time
			err := lock.Pair(ctx, func() {
				fmt.Fprintln(taker, "wait")
				time.Sleep(wait + rand.N(wait))
				released = time.Now()
			})
			if err != nil {
				return 0, err
			}
			line, err := answers.ReadString('\n')
			if err != nil {
				return 0, gone(ctx)
			}
			taken, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			s.Meter.Took(time.Unix(0, taken).Sub(released))
			return 1, err
		}
	})
}

// take waits for the lock when the other process tells it to, and says when it had the lock. Both
// processes are on one machine with one clock.
func take(ctx context.Context, s *Site, lock peer.Lock, giver net.Conn) error {
	orders := bufio.NewReader(giver)
	return s.Loop(ctx, 1, func(int) Task {
		return func(ctx context.Context) (int64, error) {
			if _, err := orders.ReadString('\n'); err != nil {
				return 0, gone(ctx)
			}
			var taken time.Time
			if err := lock.Pair(ctx, func() { taken = time.Now() }); err != nil {
				return 0, err
			}
			if _, err := fmt.Fprintln(giver, taken.UnixNano()); err != nil {
				return 0, gone(ctx)
			}
			return 0, nil
		}
	})
}

// gone returns at the end of the run, when the other process does not answer any more. Either the
// other process has ended a little earlier, or it reports the reason itself.
func gone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
