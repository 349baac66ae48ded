// Settle cleans up in the background until no request can come late any more. It is bounded, and it does not go on after
// Close. Releases that are bounded alike share a bound.

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var clockScript = conn.NewScript("clock", `
redis.call('incr', KEYS[1])
return {1, now}`, conn.Always)

// undoing is an undo that the server answers.
type undoing struct {
	e     *Engine
	calls atomic.Int64
	last  atomic.Int64 // the server's time in the last answer
}

func (u *undoing) undo(ctx context.Context) (*conn.Call, error) {
	c := &conn.Call{Script: clockScript, Keys: []string{"undone"}, Cleanup: true}
	if err := u.e.Conn.Run(ctx, c); err != nil {
		return nil, err
	}
	u.calls.Add(1)
	u.last.Store(c.ServerTime())
	return c, nil
}

func TestSettleGoesOnUntilNothingCanComeLate(t *testing.T) {
	for ahead, want := range map[time.Duration]int64{
		-time.Second: 1, 0: 2, time.Millisecond: 2, // once at once, and once past the not-after
		conn.Window: 7, // and after 5, 20, 65, 200 and 605 ms
	} {
		inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
			u := &undoing{e: e}
			notAfter := time.Now().Add(ahead).UnixMicro()
			e.Settle(notAfter, time.Minute, u.undo)
			time.Sleep(10 * time.Second)
			if got := u.calls.Load(); got != want || u.last.Load() <= notAfter {
				t.Errorf("%v ahead: %d calls, want %d; the last one at %d, want past %d", ahead, got, want, u.last.Load(), notAfter)
			}
		})
	}
}

// The server's clock decides when Settle ends, even if that clock steps.
func TestSettleFollowsTheServersClock(t *testing.T) {
	inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
		u := &undoing{e: e}
		begun := time.Now()
		s.SetTime(begun.Add(-time.Hour))
		e.Settle(begun.Add(-time.Hour).Add(conn.Window).UnixMicro(), time.Minute, u.undo)
		time.Sleep(5 * time.Second)
		if u.calls.Load() < 2 || u.last.Load() != begun.Add(-time.Hour).UnixMicro() {
			t.Fatalf("%d calls, the last at %d: the server's clock stands still", u.calls.Load(), u.last.Load())
		}
		s.SetTime(begun)
		time.Sleep(5 * time.Second)
		after := u.calls.Load()
		time.Sleep(5 * time.Second)
		if u.calls.Load() != after {
			t.Error("goes on past the not-after")
		}
	})
}

func TestSettleIsBounded(t *testing.T) {
	const limit = 5 * time.Second
	for name, undo := range map[string]func(ctx context.Context) (*conn.Call, error){
		"undo that hangs": func(ctx context.Context) (*conn.Call, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"not-after that never comes": func(context.Context) (*conn.Call, error) {
			return &conn.Call{Reply: conn.Reply{Numbers: []int64{1, time.Now().Add(-time.Hour).UnixMicro()}}}, nil
		},
		"undo that fails":    func(context.Context) (*conn.Call, error) { return nil, errors.New("boom") },
		"nothing left to do": func(context.Context) (*conn.Call, error) { return nil, nil },
	} {
		inBubble(t, func(t *testing.T, e *Engine, s *redistest.MiniServer) {
			var ended atomic.Bool
			e.Settle(time.Now().Add(conn.Window).UnixMicro(), limit, func(ctx context.Context) (*conn.Call, error) {
				context.AfterFunc(ctx, func() { ended.Store(true) }) // Settle's context ends with Settle
				return undo(ctx)
			})
			time.Sleep(limit + time.Millisecond)
			synctest.Wait()
			if !ended.Load() {
				t.Errorf("%s: goes on after %v", name, limit)
			}
		})
	}
}

// Each Close waits for clean-ups within its grace, and no longer.
func TestCloseWaitsForCleanupsWithinItsGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		notAfter time.Duration
		silent   bool
		want     time.Duration
	}{
		"that is done":           {-time.Second, false, 0},
		"that ends in time":      {conn.Window, false, conn.Window + time.Millisecond},
		"that waits for long":    {20 * time.Second, false, closeGrace},
		"whose server is silent": {conn.Window, true, closeGrace},
	} {
		redistest.Bubble(t, func(t *testing.T) {
			proxy := redistest.Mini(t).Proxy()
			e, err := New(proxy.Client(t), nil, discard)
			redistest.Must(t, err)
			u := &undoing{e: e}
			redistest.Must(t, redistest.Err(u.undo(t.Context()))) // the client is connected now
			if tc.silent {
				proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
			}
			notAfter := time.Now().Add(tc.notAfter).UnixMicro()
			e.Settle(notAfter, time.Minute, u.undo)
			synctest.Wait()
			begun, done := time.Now(), make(chan time.Time)
			for range 3 {
				go func() { e.Close(); done <- time.Now() }()
			}
			for range 3 {
				// Closing cuts connections. A clean-up that is under way is sent again after a backoff.
				if took := (<-done).Sub(begun); took < tc.want || took > tc.want+50*time.Millisecond {
					t.Errorf("%s: Close took %v, want %v", name, took, tc.want)
				}
			}
			if tc.want < closeGrace && u.last.Load() <= notAfter {
				t.Errorf("%s: Close has cut a clean-up short", name)
			}
			if e.Background(func() { t.Error("begun after Close") }) {
				t.Error("Background after Close says that it runs")
			}
			e.Settle(0, time.Minute, func(context.Context) (*conn.Call, error) {
				t.Error("a clean-up has begun after Close")
				return nil, nil
			})
			begun = time.Now()
			if e.Close(); time.Since(begun) != 0 {
				t.Errorf("%s: one more Close took %v", name, time.Since(begun))
			}
		})
	}
}

// A server answers late. Close waits for a clean-up as long as that needs; Shutdown does as long as its context
// lasts, and a Close's usual time.
func TestCloseWaitsForAServerThatAnswersLate(t *testing.T) {
	const delay = 1200 * time.Millisecond
	for name, tc := range map[string]struct {
		shutdown time.Duration // Shutdown in place of Close, with such a context
		want     time.Duration // how long it takes; 0: until the clean-up is done
	}{
		"Close":                           {},
		"Shutdown":                        {shutdown: time.Minute},
		"Shutdown, whose context is over": {shutdown: time.Nanosecond, want: closeGrace},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				proxy := redistest.Mini(t).Proxy()
				e, err := New(proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second }), nil, discard)
				redistest.Must(t, err)
				proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Delay(delay) })
				u := &undoing{e: e}
				for range 3 { // the Client finds out how slow the server is
					redistest.Must(t, redistest.Err(u.undo(t.Context())))
				}
				notAfter := time.Now().Add(e.Conn.Needs() - delay).UnixMicro()
				e.Settle(notAfter, time.Minute, u.undo)
				synctest.Wait()
				begun := time.Now()
				if tc.shutdown == 0 {
					e.Close()
				} else {
					ctx := redistest.Within(t, tc.shutdown)
					_ = e.Shutdown(ctx)
				}
				took := time.Since(begun)
				if done := u.last.Load() > notAfter; done != (tc.want == 0) || tc.want > 0 && took > tc.want+100*time.Millisecond {
					t.Errorf("after %v the clean-up is done: %t", took, done)
				}
			})
		})
	}
}

func TestReleasesShareABoundThatIsNeverLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{}
		defer e.graces.close()
		within := func(ctx context.Context, left time.Duration) {
			t.Helper()
			until, bounded := ctx.Deadline()
			if got := time.Until(until); !bounded || got > left || got <= left-shared {
				t.Errorf("bounded %v, for %v more, when %v were asked for", bounded, got, left)
			}
		}
		whole, shorter := e.Grace(), e.GraceUntil(time.Now().Add(2*time.Second))
		within(whole, Grace)
		within(shorter, 2*time.Second)

		time.Sleep(shared - time.Millisecond)
		if e.Grace() != whole {
			t.Error("a release has a bound of its own")
		}
		if e.GraceUntil(time.Now().Add(2*time.Second)) != shorter {
			t.Error("a release of a hold that ends sooner has a bound of its own")
		}
		within(e.Grace(), Grace)

		time.Sleep(time.Millisecond)
		if e.Grace() == whole {
			t.Errorf("a bound is shared for more than %v", shared)
		}
		for _, left := range []time.Duration{2 * time.Second, 1900 * time.Millisecond, 3 * time.Second, time.Second} {
			within(e.GraceUntil(time.Now().Add(left)), left)
		}
		within(e.Grace(), Grace)

		time.Sleep(Grace)
		if whole.Err() == nil || shorter.Err() == nil {
			t.Error("a bound has not ended")
		}
	})
}
