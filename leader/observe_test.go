// These tests show what those who do not lead see.

package leader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// watching is an observer that notes what it sees.
type watching struct {
	s    *stage
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	infos []leader.Info
}

func (s *stage) watch(c *candidate) *watching {
	ctx, stop := context.WithCancel(s.T.Context())
	w := &watching{s: s, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for info := range c.Observe(ctx) {
			w.mu.Lock()
			w.infos = append(w.infos, info)
			w.mu.Unlock()
		}
	}()
	synctest.Wait()
	return w
}

// want fails the test unless exactly these leaders were seen so far, "" for nobody.
func (w *watching) want(seen ...string) {
	w.s.T.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for _, info := range w.infos {
		got = append(got, info.Identity)
	}
	if !slices.Equal(got, seen) {
		w.s.T.Errorf("at %v: seen %q, want %q", w.s.Now(), got, seen)
	}
}

// wantLast fails the test unless the observer sees that leader now, "" for nobody.
func (w *watching) wantLast(id string) {
	w.s.T.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	world.Equal(w.s.T, w.infos[len(w.infos)-1].Identity, id, "seen %q, want %q", id)
}

func (w *watching) end() {
	w.stop()
	<-w.done
}

// An observer sees each change at once, and ends with its loop, its context or its Client.
func TestObserveShowsEachChangeAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		o := s.candidate("observer")
		w := s.watch(o)
		second := s.watch(o)
		w.want("")
		s.At(10 * time.Second)
		a := s.candidate("a").campaign(untilOver)
		w.want("", "a")
		third := s.candidate("late")
		late := s.watch(third)
		late.want("a")
		s.At(time.Minute)
		a.retire()
		w.want("", "a", "")
		s.candidate("b").campaign(untilOver).retire()
		w.want("", "a", "", "b", "")
		o.p.Forget()
		s.At(2 * time.Minute)
		if n := o.p.Runs(""); n < 40 || n > 60 {
			t.Errorf("%d requests in a minute of two observers who see nothing new", n)
		}
		second.want("", "a", "", "b", "")
		for range o.Observe(t.Context()) {
			break
		}
		w.end()
		second.end()
		third.p.Close()
		<-late.done
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
		w.want("a", "")
		o.p.Unmute()
		b := s.candidate("b", leader.Lease(10*time.Second)).campaign(untilOver)
		s.At(2 * time.Minute)
		b.p.Unplug(true)
		s.At(2*time.Minute + 10*time.Second + 10*time.Millisecond)
		w.want("a", "", "b", "")
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
		newest := int64(0)
		for _, info := range w.infos {
			if info.Leads() && info.Token < newest {
				t.Errorf("token %d seen after %d", info.Token, newest)
			}
			newest = max(newest, info.Token)
		}
		b.retire()
	})
}

func TestTheHandlerTellsWhoLeads(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		says := func(c *candidate, want string, within time.Duration) {
			t.Helper()
			rec, at := httptest.NewRecorder(), s.Now()
			c.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			world.Within(t, "the answer", s.Now()-at, 0, within)
			var status leader.Status
			if err := json.Unmarshal(rec.Body.Bytes(), &status); err != nil {
				t.Errorf("%s: %v", rec.Body, err)
			}
			if rec.Header().Get("Content-Type") != "application/json" || status.Identity != c.id || status.Name != name {
				t.Errorf("%v %+v", rec.Header(), status)
			}
			got := fmt.Sprint(rec.Code, " ", status.Leading)
			if l := status.Leader; l != nil {
				got += fmt.Sprintf(" %s %s %d %d %t", l.Identity, l.Value, l.Priority, l.Token, l.Since.IsZero())
			}
			world.Equal(t, got, want, "says %s, want %s", want)
		}
		a, b := s.candidate("a", leader.Priority(3)), s.candidate("b")
		says(a, "503 false", 0)
		a.campaign(untilOver)
		term, _, _, _ := a.seen()
		leads := fmt.Sprintf(" a addr of a 3 %d false", term.Token())
		says(a, "200 true"+leads, 0)
		says(b, "503 false"+leads, 0)
		// Redis is away: the leader knows that it leads, and says so at once; another says at the bound of
		// the question that it does not.
		a.p.Unplug(true)
		b.p.Unplug(true)
		says(a, "200 true"+leads, 0)
		says(b, "503 false", 500*time.Millisecond)
		s.At(35 * time.Second)
		says(a, "503 false", 500*time.Millisecond)
		a.p.Unplug(false)
		a.stop(errors.New("done"))
		<-a.done
	})
}
