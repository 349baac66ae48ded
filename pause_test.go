// While a name is paused nothing new begins at it, and afterwards everything goes on of its own accord.

package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/once"
)

// paused has pod-1 pause the name for ten minutes.
func paused(t *testing.T, mini *redistest.MiniServer, name string) *holdfast.Client {
	t.Helper()
	c := known(t, mini, "pod-1")
	must(t, c.Pause(t.Context(), name, holdfast.Until(time.Now().Add(10*time.Minute)), holdfast.Because("migration 7")))
	return c
}

// says fails the test unless an error says that the name is paused, by whom and why.
func says(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, holdfast.ErrPaused) || !strings.Contains(err.Error(), `by "pod-1" until`) || !strings.Contains(err.Error(), `"migration 7"`) {
		t.Errorf("%v", err)
	}
}

// This catches a tick that is won while its name is paused, and one that is not won afterwards.
func TestPause_Tick(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		operator, at := paused(t, mini, "report"), time.Now()
		won, err := c.Tick(t.Context(), "report", at, time.Hour)
		if says(t, err); won {
			t.Error("it is won")
		}
		if won, err = c.Tick(t.Context(), "another", at, time.Hour); err != nil || !won {
			t.Errorf("%v, %v", won, err)
		}
		must(t, operator.Resume(t.Context(), "report"))
		must(t, operator.Resume(t.Context(), "report")) // it is not paused
		if won, err = c.Tick(t.Context(), "report", at, time.Hour); err != nil || !won {
			t.Errorf("%v, %v", won, err)
		}
		must(t, operator.Pause(t.Context(), "report", holdfast.Until(time.Now().Add(time.Minute))))
		time.Sleep(61 * time.Second)
		if won, err = c.Tick(t.Context(), "report", at.Add(time.Hour), time.Hour); err != nil || !won {
			t.Errorf("%v, %v", won, err)
		}
	})
}

// This catches a leader that goes on, one that is elected meanwhile, and candidates that do not come back.
func TestPause_Leader(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		var leading, terms atomic.Int64
		ended := make(chan error, 1)
		work := func(ctx context.Context, _ *leader.Term) error {
			leading.Add(1)
			terms.Add(1)
			<-ctx.Done()
			leading.Add(-1)
			select {
			case ended <- context.Cause(ctx):
			default:
			}
			return nil
		}
		for range 3 {
			e := known(t, mini, "pod-2").Leader("scheduler")
			defer background(t, func(ctx context.Context) { _ = e.Run(ctx, work) })()
		}
		time.Sleep(5 * time.Second)
		if leading.Load() != 1 {
			t.Fatalf("%d lead", leading.Load())
		}
		operator := paused(t, mini, "scheduler")
		time.Sleep(2 * time.Second)
		if leading.Load() != 0 {
			t.Error("it goes on")
		}
		select {
		case err := <-ended:
			says(t, err)
		default:
			t.Error("its context has not ended")
		}
		time.Sleep(5 * time.Minute)
		if terms.Load() != 1 {
			t.Errorf("%d terms", terms.Load())
		}
		must(t, operator.Resume(t.Context(), "scheduler"))
		time.Sleep(3 * time.Second)
		if leading.Load() != 1 {
			t.Errorf("%d lead", leading.Load())
		}
		must(t, operator.Pause(t.Context(), "scheduler", holdfast.Until(time.Now().Add(time.Minute))))
		time.Sleep(63 * time.Second)
		if leading.Load() != 1 || terms.Load() != 3 {
			t.Errorf("%d lead, in %d terms", leading.Load(), terms.Load())
		}
	})
}

// Work that heeds a pause does not begin during it, and a result that is kept is returned all the same.
func TestPause_OnceAndDo(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		charge := c.Once("x", once.Pausable())
		done := 0
		work := func(context.Context) error { done++; return nil }
		must(t, once.Do(t.Context(), charge, "before", work))
		operator := paused(t, mini, "x")
		must(t, once.Do(t.Context(), charge, "before", work))
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		says(t, once.Do(short, charge, "during", work))
		says(t, once.Do(t.Context(), c.Once("x", once.Pausable(), once.OnBusy(once.Fail)), "during", work))
		says(t, holdfast.Do(t.Context(), c.Mutex("x"), work, holdfast.Pausable(), holdfast.WaitAtMost(time.Minute)))
		says(t, holdfast.Do(t.Context(), c.Mutex("x"), work, holdfast.Pausable(), holdfast.WaitAtMost(0)))
		if done != 1 {
			t.Errorf("%d times", done)
		}
		if i := inspected(t, c, "x"); i.Kind != holdfast.KindFree || i.Paused == nil || i.Paused.By != "pod-1" || i.Paused.Because != "migration 7" {
			t.Errorf("%v, %v", i, i.Paused)
		}
		if all := allOf(t, c, "*"); len(all) != 1 || all["x"].Paused == nil {
			t.Errorf("%v", all)
		}
		must(t, holdfast.Do(t.Context(), c.Mutex("x"), work))
		time.AfterFunc(time.Minute, func() { _ = operator.Resume(context.Background(), "x") })
		began := time.Now()
		must(t, holdfast.Do(t.Context(), c.Mutex("x"), work, holdfast.Pausable()))
		must(t, once.Do(t.Context(), charge, "during", work))
		if took := time.Since(began); done != 4 || took < time.Minute || took > 63*time.Second {
			t.Errorf("%d times, after %v", done, took)
		}
		prefixed := clienttest.OpenClient(t, mini.Client(), holdfast.WithKeyPrefix("app:"))
		for _, l := range []holdfast.Locker{c.Slots("y", 1).Locker(), prefixed.Slots("y", 1).Locker()} {
			if err := holdfast.Do(t.Context(), l, work, holdfast.Pausable()); !errors.Is(err, holdfast.ErrBadArgument) || done != 4 {
				t.Errorf("%v", err)
			}
		}
		err := holdfast.Do(t.Context(), holdfast.NewMultiLock(c.Mutex("y")), work, holdfast.Pausable())
		if !errors.Is(err, holdfast.ErrBadArgument) || done != 4 {
			t.Errorf("%v", err)
		}
		if all := allOf(t, c, "*"); len(all) != 0 {
			t.Errorf("%v", all)
		}
	})
}

// A Pause whose reply is lost has paused; one that is given up leaves what was there before; and one that makes no sense does
// nothing.
func TestPause_LostAndRefused(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		way := mini.Proxy()
		c := holdfast.New(way.Client(t), holdfast.WithIdentity("pod-2"))
		defer c.Close()
		until := holdfast.Until(time.Now().Add(time.Hour))
		for _, wrong := range []holdfast.PauseOption{nil, holdfast.Until(time.Now()), holdfast.Until(time.Now().Add(31 * 24 * time.Hour))} {
			if err := c.Pause(t.Context(), "x", wrong); !errors.Is(err, holdfast.ErrBadArgument) {
				t.Errorf("%v", err)
			}
		}
		first := redistest.CloseAfterExec
		way.OnCommand(func(cmd redistest.Command) redistest.Fault {
			fault := redistest.Fault(redistest.Pass)
			if strings.HasPrefix(strings.ToLower(cmd.Name), "eval") {
				fault, first = first, redistest.Pass
			}
			return fault
		})
		must(t, c.Pause(t.Context(), "x", until, holdfast.Because("one")))
		looks := known(t, mini, "pod-3")
		if p := inspected(t, looks, "x").Paused; p == nil || p.Because != "one" {
			t.Errorf("%v", p)
		}
		way.OnCommand(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(strings.ToLower(cmd.Name), "eval") {
				return redistest.Silence
			}
			return redistest.Pass
		})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Pause(short, "x", until, holdfast.Because("two")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		way.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Pass })
		time.Sleep(10 * time.Second)
		if p := inspected(t, looks, "x").Paused; p == nil || p.Because != "one" {
			t.Errorf("after a Pause that was given up: %v", p)
		}
		must(t, c.Pause(t.Context(), "x", until, holdfast.Because("three")))
		must(t, looks.Resume(t.Context(), "x"))
		if p := inspected(t, looks, "x").Paused; p != nil {
			t.Errorf("%v", p)
		}
		time.Sleep(30 * time.Second)
		if len(mini.Keys()) > 0 {
			t.Errorf("%v", mini.Keys())
		}
	})
}
