// Many processes compete for one lock: no two holders overlap, and tokens grow.

package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// section is what the fault tests do inside a lock. It notices any other holder inside, and it
// notes the token of each grant in the order of the grants. The record is kept apart from the lock,
// over a connection of its own.
type section struct {
	rdb  redis.UniversalClient
	name string
}

// enter reports an overlap, or an error if it could not keep the record.
func (s section) enter(ctx context.Context, token int64) error {
	var inside *redis.IntCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		inside = p.Incr(ctx, s.name+":inside")
		p.RPush(ctx, s.name+":tokens", token)
		return nil
	})
	if err == nil && inside.Val() != 1 {
		err = fmt.Errorf("overlap: %d are inside %s", inside.Val(), s.name)
	}
	return err
}

func (s section) leave(ctx context.Context) error {
	n, err := s.rdb.Decr(ctx, s.name+":inside").Result()
	if err == nil && n != 0 {
		err = fmt.Errorf("overlap: %d are inside %s after one has left", n, s.name)
	}
	return err
}

// check fails the test unless the record has all grants, each with a token greater than the token
// before it.
func (s section) check(t testing.TB, grants int) {
	t.Helper()
	tokens, err := s.rdb.LRange(clienttest.Generous(t), s.name+":tokens", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) != grants {
		t.Errorf("%s: %d grants on record, want %d", s.name, len(tokens), grants)
	}
	last := int64(0)
	for i, text := range tokens {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if token <= last {
			t.Fatalf("%s: grant %d has token %d after %d", s.name, i, token, last)
		}
		last = token
	}
}

const (
	contenders           = 4
	contendingGoroutines = 100
)

// runContender is one of the processes of TestContentionAcrossProcesses.
func runContender(c *redistest.ChildContext) {
	locks := redis.NewClient(&redis.Options{Addr: os.Getenv("LOCKS")})
	defer locks.Close()
	record := redis.NewClient(&redis.Options{Addr: os.Getenv("RECORD"), MaxRetries: -1})
	defer record.Close()
	client := holdfast.New(locks)
	defer client.Close()
	share, _ := strconv.Atoi(os.Getenv("SHARE"))
	if _, err := client.Mutex("warm up").Locked(c); err != nil {
		c.Say("error %v", err)
	}
	c.Say("ready")
	c.Next()

	mutex, inside := client.Mutex("contended"), section{record, "contended"}
	var left atomic.Int64
	left.Store(int64(share))
	var waits clienttest.Spread
	var wg sync.WaitGroup
	for range contendingGoroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				asked := time.Now()
				l, err := mutex.Lock(c)
				if err != nil {
					c.Say("error %v", err)
					return
				}
				waits.Add(time.Since(asked))
				if err := inside.enter(c, l.Token()); err != nil {
					c.Say("error %v", err)
				}
				if err := inside.leave(c); err != nil {
					c.Say("error %v", err)
				}
				if err := l.Release(c); err != nil {
					c.Say("error %v", err)
				}
			}
		})
	}
	wg.Wait()
	c.Say("done waits %v", &waits)
}

func TestContentionAcrossProcesses(t *testing.T) {
	locks, record := redistest.Server(t), redistest.Server(t)
	total := redistest.CountOfWork(t, 100_000)
	clienttest.LeaveNothing(t, locks.Admin())

	var children []*redistest.ChildProc
	for range contenders {
		children = append(children, redistest.Start(t, "contender", map[string]string{
			"LOCKS": locks.Addr(), "RECORD": record.Addr(), "SHARE": fmt.Sprint(total / contenders),
		}))
	}
	for _, c := range children {
		c.Expect("ready")
	}
	started := time.Now()
	for _, c := range children {
		c.Send("go")
	}
	// The test waits for as long as the contenders take: LONG runs go on for longer than a Line
	// may.
	for _, c := range children {
		for {
			line, ok := c.TryLine(3 * time.Minute)
			if !ok {
				t.Fatal("a contender says nothing")
			}
			if len(line) > 5 && line[:5] == "done " {
				clienttest.Figure(t, "a process's %s", line[5:])
				break
			}
			t.Error(line)
		}
	}
	took := time.Since(started)
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("a contender ended with %v", err)
		}
	}
	section{record.Admin(), "contended"}.check(t, total/contenders*contenders)
	clienttest.Figure(t, "%d grants to %d processes x %d goroutines: 0 overlaps, tokens in order, %.0f grants/s with a section of two round trips",
		total, contenders, contendingGoroutines, float64(total)/took.Seconds())
}

// BenchmarkContended lets 128 goroutines of one process take turns on one lock.
func BenchmarkContended(b *testing.B) {
	client := clienttest.OpenClient(b, redistest.Server(b).Client(b))
	m := client.Mutex("contended")
	clienttest.GiveBack(b, clienttest.Grab(b, m))
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				l, err := m.Lock(b.Context())
				if err == nil {
					err = l.Release(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
