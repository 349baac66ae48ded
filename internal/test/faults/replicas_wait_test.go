// WAIT reports about the connection that it is sent on, so the WAIT of a grant must be sent on the
// grant's own connection, after a request of its own that has written.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Each kind of lock asks for as many replicas as the Client is made to.
func TestReplicas_OfTheClient(t *testing.T) {
	eachKind(t, func(w *world.World, kind lockertest.Kind) {
		p, rival := w.Process(holdfast.WithReplicas(1)), w.Process()
		mine, theirs := contenders(w.T, kind, "myLock", p.Client, rival.Client)
		acknowledge(p.Net, 0)
		_, err := mine.Lock(w.T.Context())
		world.WantErr(w.T, err, holdfast.ErrNotReplicated)
		w.Release(w.Lock(w.T.Context(), theirs))
		acknowledge(p.Net, 1)
		w.Release(w.Lock(w.T.Context(), mine))
	})
}

// wireLog records the commands that passed a proxy, in the order in which they came.
type wireLog struct {
	mu       sync.Mutex
	commands []wireCommand
}

type wireCommand struct {
	redistest.Command
	whole bool // the command and its reply passed
}

// note is a proxy's rule. About one command in ninety is lost, with its connection, before or after
// Redis has executed it. A replica acknowledges the others.
func (w *wireLog) note(c redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault, passes := redistest.Fault(redistest.Pass), true
	if c.Name == "WAIT" {
		fault = redistest.ReplyNumber(1)
	}
	n := len(w.commands)
	switch {
	case isScript(c) && n%89 == 0:
		fault, passes = redistest.CloseAfterExec, false
	case c.Name == "WAIT" && n%97 == 0: // the grant's reply is heard, the reply of its WAIT is not
		fault, passes = redistest.DropBefore, false
	}
	w.commands = append(w.commands, wireCommand{c, passes})
	return fault
}

// waited reports whether, among the first n commands, a WAIT followed that owner's request on the
// same connection, and both got their replies.
func (w *wireLog) waited(owner string, n int) bool {
	asked := make(map[int64]bool) // by connection
	for _, c := range w.commands[:n] {
		switch {
		case !c.whole:
		case isScript(c.Command) && slices.Contains(c.Args, owner):
			asked[c.Conn] = true
		case c.Name == "WAIT" && asked[c.Conn]:
			return true
		}
	}
	return false
}

// Many goroutines lock at once, on connections that break all the time. Each grant's request and
// its WAIT are sent on one connection.
func TestInterleaving_WaitOnTheConnectionOfItsGrant(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process(holdfast.WithReplicas(1))
		var log wireLog
		p.Net.OnCommand(log.note)
		const workers = 24 // more than there are connections, so that requests share pipelines
		rounds := redistest.CountOfWork(t, 400)
		granted := make(map[string]int) // owner to how many commands had passed when Lock returned
		clienttest.Each(workers*rounds, workers, func(i int) {
			l, err := p.Mutex(fmt.Sprint("m", i%workers)).Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			log.mu.Lock()
			granted[l.Owner().String()] = len(log.commands)
			log.mu.Unlock()
			w.Release(l)
		})
		log.mu.Lock()
		defer log.mu.Unlock()
		for owner, n := range granted {
			if !log.waited(owner, n) {
				t.Errorf("%s was granted without a WAIT on the connection of its request", owner)
			}
		}
		written := make(map[int64]bool) // connections with a script since their last WAIT
		for _, c := range log.commands {
			if c.Name == "WAIT" && !written[c.Conn] {
				t.Errorf("a WAIT on connection %d, on which nothing was written for it", c.Conn)
			}
			if isScript(c.Command) || c.Name == "WAIT" {
				written[c.Conn] = c.Name != "WAIT"
			}
		}
	})
}

// If a script answers "yours" and has written nothing, the WAIT after it answers at once, whatever
// the replicas have. A server counts from the last write of the connection, and after a break the
// connection is a new one. So a request that finds itself executed writes all the same, even if
// there is enough time to live. A renewal does the same.
func TestInterleaving_WaitAfterARepeatedRequest(t *testing.T) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Server(t)
			proxy := redistest.Proxy(t, server.Addr())
			client := clienttest.OpenClient(t, proxy.Client(t))
			if kind.Prepare != nil {
				redistest.Must(t, kind.Prepare(clienttest.Generous(t), client, "repeated"))
			}
			m := kind.Locker(client, "repeated", holdfast.Renewed(keptLease))
			clienttest.GiveBack(t, clienttest.Grab(t, m)) // loads the scripts, and agrees about stripes

			// The acquire is executed, its reply is lost, and the client sends it again.
			watch := &writes{rdb: server.Admin(), loses: 1}
			proxy.OnCommand(watch.rule)
			l := clienttest.Grab(t, m)
			watch.written(t, "the repeated acquire", 0)

			// A renewal finds a longer time to live than its own.
			watch = &writes{rdb: server.Admin()}
			proxy.OnCommand(watch.rule)
			watch.written(t, "a renewal", time.Minute)
			proxy.OnCommand(nil)
			clienttest.GiveBack(t, l)
		})
	}
}

// writes looks at what a server has written when a request has run that finds itself done.
type writes struct {
	rdb   *redis.Client
	loses int // so many requests lose their replies before that

	mu     sync.Mutex
	before string // how much the server had written before that request
}

// rule prolongs everything that is held, before the request comes of which the test wants to know.
func (w *writes) rule(c redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.loses--; {
	case c.Name != "EVALSHA":
		w.loses++
	case w.loses >= 0:
		return redistest.CloseAfterExec
	case w.before == "":
		w.prolong()
		w.before = w.count()
	}
	return redistest.Pass
}

// written fails the test unless the server writes something when that request runs.
func (w *writes) written(t *testing.T, what string, within time.Duration) {
	t.Helper()
	redistest.Eventually(t, within, what+" has written something", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.before == "" || w.count() == w.before {
			return errors.New("nothing yet")
		}
		return nil
	})
}

// prolong lets everything that is held live for a minute more.
func (w *writes) prolong() {
	ctx := context.Background()
	for _, key := range w.rdb.Keys(ctx, "*").Val() {
		if w.rdb.Type(ctx, key).Val() == "zset" {
			now := time.Now() // other scores are no times
			ends := redis.ZRangeArgs{Key: key, ByScore: true, Start: now.UnixMilli(), Stop: now.Add(time.Hour).UnixMilli()}
			for _, member := range w.rdb.ZRangeArgs(ctx, ends).Val() {
				w.rdb.ZIncrBy(ctx, key, float64(time.Minute.Milliseconds()), member)
			}
		} else if ttl := w.rdb.PTTL(ctx, key).Val(); ttl > 0 && ttl < time.Minute {
			w.rdb.PExpire(ctx, key, ttl+time.Minute)
		}
	}
}

// count returns how much the server has written.
func (w *writes) count() string {
	info := w.rdb.Info(context.Background(), "persistence").Val()
	_, rest, _ := strings.Cut(info, "rdb_changes_since_last_save:")
	count, _, _ := strings.Cut(rest, "\r\n")
	return count
}
