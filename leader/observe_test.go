// These tests show what those who do not lead see.

package leader_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// watching is an observer that notes what it sees.
type watching struct {
	s    *stage
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	seen  []string
	at    []time.Duration
	infos []leader.Info
}

func (s *stage) watch(c *candidate) *watching {
	ctx, stop := context.WithCancel(s.T.Context())
	w := &watching{s: s, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for info := range c.Observe(ctx) {
			w.mu.Lock()
			w.seen, w.at, w.infos = append(w.seen, info.Identity), append(w.at, s.Now()), append(w.infos, info)
			w.mu.Unlock()
		}
	}()
	synctest.Wait()
	return w
}

// sees returns who was seen so far, "" for nobody.
func (w *watching) sees() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// want fails the test unless exactly these leaders were seen, "" for nobody, the last at that time.
func (w *watching) want(at time.Duration, seen ...string) {
	w.s.T.Helper()
	if got := w.sees(); !slices.Equal(got, seen) || w.at[len(w.at)-1] != at {
		w.s.T.Errorf("at %v: seen %q at %v, want %q, the last at %v", w.s.Now(), got, w.at, seen, at)
	}
}

// wantLast fails the test unless the observer sees that leader now.
func (w *watching) wantLast(id string) {
	w.s.T.Helper()
	if got := w.sees(); got[len(got)-1] != id {
		w.s.T.Errorf("at %v: seen %q, want %q", w.s.Now(), got, id)
	}
}

// neverWentBack fails the test if an older term was seen after a newer one.
func (w *watching) neverWentBack() {
	w.s.T.Helper()
	newest := int64(0)
	for _, info := range w.infos {
		if info.Leads() && info.Token < newest {
			w.s.T.Errorf("token %d seen after %d", info.Token, newest)
		}
		newest = max(newest, info.Token)
	}
}

func (w *watching) end() {
	w.stop()
	<-w.done
}

func TestObserveShowsEachChangeAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		o := s.candidate("observer")
		w := s.watch(o)
		second := s.watch(o)
		w.want(0, "")
		s.At(10 * time.Second)
		a := s.candidate("a").campaign(untilOver)
		w.want(10*time.Second, "", "a")
		late := s.watch(s.candidate("late"))
		late.want(10*time.Second, "a")
		s.At(time.Minute)
		b := s.candidate("b").campaign(untilOver)
		a.retire()
		synctest.Wait()
		w.mu.Lock()
		w.seen = slices.DeleteFunc(w.seen, func(id string) bool { return id == "" })
		w.mu.Unlock()
		w.want(time.Minute, "a", "b")
		b.retire()
		w.want(time.Minute, "a", "b", "")
		o.p.Forget()
		s.At(2 * time.Minute)
		if n := o.p.Runs(""); n < 40 || n > 60 {
			t.Errorf("%d requests in a minute of two observers who see nothing new", n)
		}
		for _, each := range []*watching{w, second, late} {
			each.end()
		}
		if len(second.seen) != len(second.infos) || second.infos[len(second.infos)-1].Leads() {
			t.Errorf("the second saw %q", second.seen)
		}
	})
}

// An observer that hears no message sees a change at its next poll, and a leader that has died when its lease is over.
func TestObserveNeedsNoMessage(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		o := s.candidate("observer")
		a := s.candidate("a").campaign(untilOver)
		w := s.watch(o)
		s.At(time.Minute)
		o.p.Mute()
		a.retire()
		s.At(time.Minute + 1250*time.Millisecond)
		w.wantLast("")
		o.p.Unmute()
		b := s.candidate("b", leader.Lease(10*time.Second)).campaign(untilOver)
		s.At(2 * time.Minute)
		b.p.Unplug(true)
		s.At(2*time.Minute + 10*time.Second + 10*time.Millisecond)
		if got := w.sees(); !slices.Equal(got, []string{"a", "", "b", ""}) {
			t.Errorf("seen %q", got)
		}
		w.end()
		b.stop(nil)
		<-b.done
		b.p.Unplug(false)
		time.Sleep(2 * time.Minute)
	})
}

// Redis has forgotten the newest term, as after a failover to a replica that did not have it. The
// older leader that it shows instead is never shown.
func TestObserveNeverGoesBack(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a := s.candidate("a").campaign(untilOver)
		w := s.watch(s.candidate("observer"))
		b := s.candidate("b").campaign(untilOver)
		s.At(10 * time.Second)
		hash, record := s.RDB.HGetAll(t.Context(), name).Val(), s.RDB.HGetAll(t.Context(), recordKey).Val()
		a.retire()
		s.At(20 * time.Second)
		s.forced = true
		s.RDB.Del(t.Context(), name, recordKey)
		for key, fields := range map[string]map[string]string{name: hash, recordKey: record} {
			s.RDB.HSet(t.Context(), key, fields)
			s.RDB.Expire(t.Context(), key, 20*time.Second)
		}
		s.RDB.Publish(t.Context(), changes, "0")
		s.At(25 * time.Second)
		w.wantLast("")
		if info, err := b.Leader(t.Context()); err != nil || info.Identity != "a" {
			t.Errorf("Redis shows %+v, %v", info, err)
		}
		s.At(2 * time.Minute)
		s.wantLeader(b)
		w.end()
		w.wantLast("b")
		w.neverWentBack()
		b.retire()
	})
}

func TestObserveEndsWithItsLoopItsContextAndTheClient(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		o := s.candidate("observer")
		for range o.Observe(t.Context()) {
			break
		}
		w := s.watch(o)
		w.end()
		w = s.watch(o)
		o.p.Close()
		<-w.done
	})
}

// Everybody sees who leads, since when, and for how long yet. A record that was deleted is written again by
// the leader's next poll, with the same token and time.
func TestARecordThatWasDeletedIsWrittenAgain(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		a, b := s.two()
		s.At(time.Minute)
		s.wantLeader(a, b)
		before, err := b.Leader(t.Context())
		term, _, _, _ := a.seen()
		if err != nil || before.Token != term.Token() || !before.Leads() || before.Since.Sub(s.Start) > time.Second ||
			before.Left < 15*time.Second || before.Left > 30*time.Second {
			t.Errorf("seen %+v, %v", before, err)
		}
		s.RDB.Del(t.Context(), recordKey)
		s.At(time.Minute + 1250*time.Millisecond)
		after, err := b.Leader(t.Context())
		if err != nil || after.Token != before.Token || !after.Since.Equal(before.Since) {
			t.Errorf("%+v, then %+v (%v)", before, after, err)
		}
		retire(b, a)
	})
}

func TestTheHandlerTellsWhoLeads(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		get := func(c *candidate) (int, leader.Status) {
			rec := httptest.NewRecorder()
			c.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			var status leader.Status
			if err := json.Unmarshal(rec.Body.Bytes(), &status); err != nil {
				t.Errorf("%s: %v", rec.Body, err)
			}
			if rec.Header().Get("Content-Type") != "application/json" || status.Identity != c.id || status.Name != name {
				t.Errorf("%v %+v", rec.Header(), status)
			}
			return rec.Code, status
		}
		a, b := s.candidate("a", leader.Priority(3)), s.candidate("b")
		if code, status := get(a); code != 503 || status.Leading || status.Leader != nil {
			t.Errorf("nobody: %d, %+v", code, status)
		}
		a.campaign(untilOver)
		term, _, _, _ := a.seen()
		if code, status := get(a); code != 200 || !status.Leading || status.Leader.Token != term.Token() {
			t.Errorf("the leader: %d, %+v", code, status)
		}
		code, status := get(b)
		if code != 503 || status.Leading || status.Leader.Identity != "a" || status.Leader.Value != "addr of a" || status.Leader.Priority != 3 {
			t.Errorf("another: %d, %+v", code, status)
		}
		world.WantErr(t, b.Elector().IsLeader(t.Context()), holdfast.ErrNoLeader)
		redistest.Check(t, a.Elector().IsLeader(t.Context()))
		// Redis is away: the leader knows that it leads, and says so at once; another says at the bound of
		// the question that it does not.
		a.p.Unplug(true)
		b.p.Unplug(true)
		at := s.Now()
		if code, status := get(a); code != 200 || status.Leader.Token != term.Token() || status.Leader.Value != "addr of a" || status.Leader.Since.IsZero() {
			t.Errorf("without Redis: %d, %+v", code, status)
		}
		world.Within(t, "the leader's answer", s.Now()-at, 0, 0)
		if code, status := get(b); code != 503 || status.Leader != nil {
			t.Errorf("another, without Redis: %d, %+v", code, status)
		}
		world.Within(t, "another's answer", s.Now()-at, 0, 500*time.Millisecond)
		s.At(35 * time.Second)
		if code, _ := get(a); code != 503 {
			t.Errorf("after the lease: %d", code)
		}
		a.p.Unplug(false)
		a.stop(errors.New("done"))
		<-a.done
	})
}
