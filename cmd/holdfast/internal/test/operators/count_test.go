// latch, sem, slots and once change what nobody holds; shards shows who has which shard.

package operators

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

func TestLatch(t *testing.T) {
	server := server(t)
	run(t, server, "latch", "show", "l").want(t, 0, "l: not set")
	run(t, server, "latch", "wait", "l").want(t, 0)
	run(t, server, "latch", "down", "l").want(t, 0, "0\n")
	run(t, server, "latch", "set", "l", "2", "--expires", "1h").want(t, 0)
	run(t, server, "latch", "set", "l", "2").want(t, 1, "l is set already")
	run(t, server, "latch", "set", "l", "0").want(t, 64)
	run(t, server, "latch", "set", "l", "many").want(t, 64)
	run(t, server, "latch", "show", "l").want(t, 0, "l: latch, 2 to come\n  lasts    ")
	run(t, server, "latch", "wait", "l", "-w", "1s").want(t, 75)
	waits := start(t, server, "latch", "wait", "l")
	run(t, server, "latch", "down", "l").want(t, 0, "1\n")
	run(t, server, "latch", "down", "l").want(t, 0, "0\n")
	waits.Expect("exit 0")
	run(t, server, "latch", "set", "l", "2").want(t, 0)
	run(t, server, "latch", "delete", "l").want(t, 0)
	run(t, server, "latch", "delete", "l").want(t, 0, "l is not set")
	run(t, server, "latch", "show", "l", "--json").want(t, 0, `"kind":"free"`)
	run(t, server, "latch").want(t, 64, "needs a command")
}

func TestSemaphore(t *testing.T) {
	server := server(t)
	run(t, server, "sem", "set", "s", "5").want(t, 64, "--permits or --counting")
	run(t, server, "sem", "set", "s", "5", "--counting").want(t, 0)
	run(t, server, "sem", "set", "s", "6").want(t, 1, "sem add")
	// A semaphore is a number too: a latch's command would take a permit away for ever.
	run(t, server, "latch", "down", "s").want(t, 1, "s is a semaphore, not a latch")
	run(t, server, "latch", "delete", "s").want(t, 1)
	run(t, server, "latch", "set", "l", "2").want(t, 0)
	run(t, server, "sem", "add", "l", "2", "--counting").want(t, 1, "l is a latch, not a semaphore")
	run(t, server, "latch", "show", "l").want(t, 0, "2 to come")
	run(t, server, "sem", "add", "s", "-2").want(t, 0)
	run(t, server, "sem", "show", "s").want(t, 0, "s: semaphore, 3 of 3 free")
	run(t, server, "sem", "add", "s", "+1").want(t, 0)
	run(t, server, "sem", "add", "s").want(t, 64)
	run(t, server, "sem", "add", "s", "x").want(t, 64)
	run(t, server, "sem", "add", "s", "1", "--nonsense").want(t, 64)
	for _, nothing := range []string{"--url=", "--key-prefix=", "--timeout=-1s"} { // an empty variable of a script
		run(t, server, "sem", "add", "s", "1", nothing).want(t, 64)
	}
	run(t, server, "sem", "add", "--help").want(t, 0, "holdfast sem add NAME N")
	run(t, server, "sem", "set", "s", "5", "--permits").want(t, 64, "of the other kind")
	run(t, server, "sem", "drain", "s").want(t, 0, "4\n")
	run(t, server, "sem", "show", "s", "--json").want(t, 0, `"value":0`, `"all":4`)
}

func TestPermitSemaphore(t *testing.T) {
	server := server(t)
	c := client(t, server, "")
	run(t, server, "sem", "set", "p", "5", "--permits").want(t, 0)
	run(t, server, "sem", "show", "p").want(t, 0, "p: 5; Redis does not say whether it is a semaphore")
	run(t, server, "sem", "set", "p", "4").want(t, 64, "Redis does not say: give --permits")
	l := clienttest.Grab(t, c.PermitSemaphore("p").Locker(2))
	run(t, server, "sem", "add", "p", "-1").want(t, 0)
	run(t, server, "sem", "show", "p").want(t, 0, "p: permits, 2 of 4 free", "held by  permit ", "held by  permit ")
	run(t, server, "sem", "set", "p", "1").want(t, 0)
	run(t, server, "sem", "show", "p").want(t, 0, "p: permits, -1 of 1 free")
	run(t, server, "sem", "drain", "p").want(t, 64)
	run(t, server, "sem", "set", "p", "1", "--counting").want(t, 64, "of the other kind")
	redistest.Check(t, l.Release(t.Context()))
}

func TestOnce(t *testing.T) {
	server := server(t)
	o := client(t, server, "pod-1").Once("charge", once.KeepErrors(time.Hour))
	run(t, server, "once", "show", "charge", "order:7").want(t, 0, "charge:order%3A7: not done")
	under, until, worked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := once.Value(context.Background(), o, "order:7", func(context.Context) (string, error) {
			close(under)
			<-until
			return "receipt\x1b[2J", nil
		})
		worked <- err
	}()
	<-under
	run(t, server, "once", "show", "charge", "order:7").want(t, 0, "charge:order%3A7: once, working", "held by", "left")
	run(t, server, "once", "forget", "charge", "order:7", "--yes").want(t, 75)
	run(t, server, "once", "show", "charge", "order:7", "--result").want(t, 1, "no result is kept")
	run(t, server, "release", "charge:order%3A7", "--force", "--yes").want(t, 1, "cannot be taken")
	close(until)
	redistest.Must(t, <-worked)
	d := run(t, server, "once", "show", "charge", "order:7")
	if d.want(t, 0, "charge:order%3A7: once, done", "lasts"); strings.Contains(d.out, "receipt") {
		t.Errorf("shows the result: %s", d.out)
	}
	run(t, server, "once", "show", "charge", "order:7", "--json").want(t, 0, `"state":"done"`)
	run(t, server, "once", "show", "charge", "order:7", "--result").want(t, 0, "receipt\x1b[2J")
	run(t, server, "once", "forget", "charge", "order:7").want(t, 64, "--yes")
	run(t, server, "once", "forget", "charge", "order:7", "--yes").want(t, 0)
	run(t, server, "once", "forget", "charge", "order:7", "--yes").want(t, 0, "there is no result")
	_ = once.Do(t.Context(), o, "bad", func(context.Context) error { return errors.New("no funds") })
	run(t, server, "once", "show", "charge", "bad").want(t, 0, "failed")
	run(t, server, "once", "show", "charge", "bad", "--result").want(t, 0, "no funds")
}

// every has each command, with arguments that make sense.
var every = [][]string{
	{"ls"}, {"ls", "a*"}, {"inspect", "x"}, {"watch"}, {"watch", "x"}, {"acquire", "x", "--lease", "1m"},
	{"extend", "x", "--lease", "1m"}, {"release", "x"}, {"release", "x", "--force", "--yes"}, {"release", "x", "--ask", "--yes"},
	{"latch", "set", "x", "1"}, {"latch", "down", "x"}, {"latch", "wait", "x"}, {"latch", "show", "x"}, {"latch", "delete", "x"},
	{"sem", "set", "x", "1"}, {"sem", "add", "x", "-1"}, {"sem", "drain", "x"}, {"sem", "show", "x"},
	{"once", "show", "x", "y"}, {"once", "show", "x", "y", "--result"}, {"once", "forget", "x", "y"}, {"check"},
	{"ls", "x"}, {"held", "x"}, {"wait", "x"}, {"wait", "x", "--try"},
	{"pause", "x", "--for", "1m"}, {"resume", "x"},
	{"tick", "show", "x", "2026-11-22T10:00:00Z"}, {"tick", "forget", "x", "2026-11-22T10:00:00Z"},
}

// A Redis that is gone, or stands still, ends each command with 69.
func TestARedisThatDoesNotAnswer(t *testing.T) {
	t.Setenv("HOLDFAST_OWNER", "ac9cf787-2d1c-4486-8727-ea2f2f26e3ba:5")
	for _, how := range []string{"gone", "frozen"} {
		server := redistest.Server(t)
		if how == "gone" {
			server.Kill()
		} else {
			server.Freeze()
		}
		for _, args := range every {
			d := run(t, server, append([]string{"--timeout", "30ms"}, args...)...)
			if d.code != 69 || !strings.HasPrefix(d.err, "holdfast: no answer from Redis at redis://127.0.0.1:") {
				t.Errorf("%s, %q: %d, %s", how, args, d.code, d.err)
			}
		}
	}
}

// A user of Redis that may do nothing gets 77 by each command.
func TestAUserWithoutRights(t *testing.T) {
	server := redistest.Server(t)
	redistest.Must(t, server.Admin().Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "+ping").Err())
	t.Setenv("HOLDFAST_OWNER", "ac9cf787-2d1c-4486-8727-ea2f2f26e3ba:5")
	for _, args := range every {
		if args[0] == "check" {
			continue // it says what is missing
		}
		d := run(t, server, append(args, "--url", "redis://u:p@"+server.Addr())...)
		redistest.Equal(t, d.code, 77, "%d, %s (%q)", d.err, args)
	}
	run(t, server, "check", "--url", "redis://u:p@"+server.Addr()).want(t, 1, "rights")
}

// An outage while watch looks is told, and does not end it.
func TestWatchOutlivesAnOutage(t *testing.T) {
	server := server(t)
	w := start(t, server, "watch", "--every", "10ms", "--timeout", "200ms")
	w.Expect("holdfast: watching")
	server.Freeze()
	w.Expect("holdfast: ")
	server.Thaw()
	w.Expect("holdfast: all can be looked at again")
	run(t, server, "acquire", "x", "--lease", "1m").want(t, 0)
	expect(t, w, "x  mutex  granted to ")
}

func TestSlots(t *testing.T) {
	server := server(t)
	run(t, server, "slots", "show", "w").want(t, 0, "w: no number is taken")
	run(t, server, "slots", "free", "w", "0", "--yes").want(t, 0, "nobody has number 0 of w")
	c := client(t, server, "pod-1")
	rests, err := c.Slots("w", 3, slots.Quarantine(time.Hour), slots.Lease(holdfast.Fixed(300*time.Millisecond))).TryAcquire(t.Context())
	redistest.Must(t, err)
	held, err := c.Slots("w", 3, slots.Prefer(2)).TryAcquire(t.Context())
	redistest.Must(t, err)
	<-rests.Done()
	seen(t, server, "w", "in quarantine at number 0", func(i holdfast.Inspection) bool {
		return len(i.Holders) == 2 && i.Holders[0].Quarantined
	})
	known(t, server, "w", "pod-1")
	run(t, server, "slots", "show", "w").want(t, 0, "w: slots, 1 of 3 free", "held by  0: in quarantine after pod-1", "held by  2: pod-1")
	run(t, server, "ls").want(t, 0, "1 of 3 free")
	run(t, server, "inspect", "w", "--json").want(t, 0, `"number":0,"quarantined":true`, `"number":2,`)
	run(t, server, "release", "w", "--force", "--yes").want(t, 64, "holdfast slots free w N")
	run(t, server, "slots", "free", "w", "0").want(t, 64, "--yes")
	run(t, server, "slots", "free", "w", "x", "--yes").want(t, 64)
	run(t, server, "slots", "free", "w", "1", "--yes").want(t, 0, "nobody has number 1 of w")
	run(t, server, "slots", "free", "w", "0", "--yes").want(t, 0, "w: taken from 0: in quarantine after pod-1")
	run(t, server, "slots", "free", "w", "2", "--yes", "--json").want(t, 0, `"kind":"slots"`, `"number":2`)
	run(t, server, "slots", "show", "w").want(t, 0, "w: no number is taken")
	redistest.Is(t, "Release", held.Release(t.Context()), holdfast.ErrLost)
	l := clienttest.Grab(t, c.Mutex("m"))
	run(t, server, "slots", "free", "m", "0", "--yes").want(t, 1, "m is a mutex, not numbered slots")
	_ = l.Release(t.Context())
}

func TestShards(t *testing.T) {
	server := server(t)
	run(t, server, "shards", "orders").want(t, 0, "orders: no member")
	ctx, stop := context.WithCancel(t.Context())
	s := client(t, server, "").Shards("orders", 4, shards.Identity("pod-1"), shards.Value("10.0.0.1:80"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, func(ctx context.Context, _ *shards.Shard) error { <-ctx.Done(); return nil })
	}()
	defer func() { stop(); <-done }()
	redistest.Eventually(t, time.Minute, "the shards are somebody's", func() error {
		info, err := s.Owner(ctx, "order 7")
		if err == nil && !info.Owned() {
			err = fmt.Errorf("shard %d is nobody's", info.Shard)
		}
		return err
	})
	run(t, server, "shards", "orders").want(t, 0, "4", "pod-1 (10.0.0.1:80)", "0-3")
	run(t, server, "shards", "orders", "--key", "order 7").want(t, 0, "shard 2: pod-1 (10.0.0.1:80)")
	run(t, server, "shards", "orders", "--json").want(t, 0, `"counts":{"pod-1":4}`)
	run(t, server, "inspect", "orders").want(t, 0, "pod-1", "4 shards: 0-3")
	run(t, server, "inspect", "orders", "--json").want(t, 0, `"shards":"0-3"`)
}
