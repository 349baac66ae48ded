// Servers that lose their data, and servers that were never there: when they count, also while a quorum begins and requests
// of another process are still on their way.

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/quorum"
)

// delayed is a rule that delays the first request for a key with a certain argument, or with any.
type delayed struct {
	key, argument string
	by            time.Duration
}

// delay sets rules for the process's requests to a server. Each is for one request.
func (p *process) delay(server int, rules ...delayed) {
	var mu sync.Mutex
	p.Nets[server].OnCommand(func(c redistest.Command) redistest.Fault {
		mu.Lock()
		defer mu.Unlock()
		for i, r := range rules {
			if len(c.Args) > 4 && c.Args[2] == r.key && (r.argument == "" || c.Args[4] == r.argument) {
				rules = append(rules[:i:i], rules[i+1:]...)
				return redistest.Delay(r.by)
			}
		}
		return redistest.Pass
	})
}

// A and B find a new quorum at the same time. A begins it, and has the lock on servers 0 and 1, which B has missed.
// Server 1 restarts without its data, and only then what B sent it arrives: either the mark with which B begins the
// quorum too, or B's first question. B must not have the lock on servers 1 and 2 while A has it.
func TestQuorum_AmnesiaWhileItBegins(t *testing.T) {
	const late = 300 * time.Millisecond
	for what, rules := range map[string][3][]delayed{
		"a mark is on its way": {
			{{name, "", time.Millisecond}, {markerKey, "new", 20 * time.Millisecond}},
			{{name, "", time.Millisecond}, {markerKey, "new", late}},
			{{markerKey, "new", 20 * time.Millisecond}},
		},
		"the question is on its way": {
			{{name, "", time.Millisecond}},
			{{name, "", late}},
			nil,
		},
		"the question for the marker is on its way": {
			{{name, "", time.Millisecond}},
			{{name, "", time.Millisecond}, {markerKey, "", late}},
			nil,
		},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, 3, func(t *testing.T, w *stage) {
				a, b := w.process(), w.process()
				a.delay(2, delayed{name, "", 5 * time.Millisecond})
				for server, rules := range rules {
					b.delay(server, rules...)
				}
				var theirs *quorum.Lease
				var failure error
				tried := make(chan struct{})
				go func() {
					theirs, failure = b.quorum().TryLock(t.Context())
					close(tried)
				}()
				held := w.lock(a.quorum())
				if w.Now() > 100*time.Millisecond || len(held.Tokens()) != 2 {
					t.Fatalf("A has it on %d servers at %v", len(held.Tokens()), w.Now())
				}
				w.RestartEmpty(1)
				<-tried
				synctest.Wait()
				if failure == nil {
					t.Errorf("B has the lock at %v, and A's lease says: %v", w.Now(), held.Err())
					redises.Release(t, theirs)
				} else if w.Now() < late {
					t.Errorf("B failed too early, at %v: %v", w.Now(), failure)
				}
				redistest.Check(t, held.Err())
				next := w.lock(b.quorum())
				if held.Err() == nil {
					t.Error("two have the lock")
				}
				if next.Token() <= held.Token() {
					t.Errorf("token %d after %d", next.Token(), held.Token())
				}
				redises.Release(t, next)
				world.WantErr(t, held.Release(t.Context()), holdfast.ErrLost)
			})
		})
	}
}

// Two processes begin a quorum, one of whose servers is slower than the others, to both or to the one that marks it.
// None of them takes a server that has answered, or that the other is about to mark, for one that has lost its data.
func TestQuorum_BeginsTogetherWithASlowServer(t *testing.T) {
	for _, late := range []delayed{{name, "", 50 * time.Millisecond}, {markerKey, "new", 100 * time.Millisecond}} {
		play(t, 3, func(t *testing.T, w *stage) {
			a, b := w.process(), w.process()
			a.delay(2, late)
			if late.argument == "" {
				b.delay(2, late)
			}
			b.delay(0, delayed{name, "", time.Millisecond}) // A has these two
			b.delay(1, delayed{name, "", time.Millisecond})
			var both sync.WaitGroup
			for _, p := range []*process{a, b} {
				both.Go(func() { redises.Release(t, w.lock(p.quorum())) })
				if late.argument != "" {
					time.Sleep(late.by / 2)
				}
			}
			both.Wait()
			if took := w.Now(); took > time.Second {
				t.Errorf("it took %v", took)
			}
			time.Sleep(beginLimit)
			if markers := w.markers(); !slices.Equal(markers, []string{"new", "new", "new"}) {
				t.Errorf("the markers are %q", markers)
			}
		})
	}
}

// A quorum of which no majority answers while it begins is not granted, and the error says so.
func TestQuorum_CannotBegin(t *testing.T) {
	for _, when := range []struct {
		what string
		mark func(n int, write string) bool // the request for a marker that is lost
	}{
		{"they are asked again", func(n int, write string) bool { return n > 1 && write == "" }},
		{"they are marked", func(_ int, write string) bool { return write == "new" }},
	} {
		for what, fault := range map[error]redistest.Fault{
			holdfast.ErrNoQuorum: redistest.Silence,
			holdfast.ErrDenied:   redistest.ReplyError("NOPERM no"),
		} {
			play(t, 3, func(t *testing.T, w *stage) {
				p := w.process()
				for _, net := range p.Nets {
					n := 0
					net.OnCommand(func(c redistest.Command) redistest.Fault {
						if len(c.Args) < 5 || c.Args[2] != markerKey {
							return redistest.Pass
						}
						if n++; when.mark(n, c.Args[4]) {
							return fault
						}
						return redistest.Pass
					})
				}
				_, err := p.quorum().TryLock(t.Context())
				world.WantErr(t, err, what)
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("when %s: it matches as if the caller's context had ended: %v", when.what, err)
				}
				w.WantHeldOn(0)
				if markers := w.markers(); slices.Contains(markers, "lost") {
					t.Errorf("when %s: the markers are %q", when.what, markers)
				}
			})
		}
	}
}

// markers returns the kind of each server's marker.
func (w *stage) markers() []string {
	var kinds []string
	for _, s := range w.Servers {
		text, _ := s.Get(markerKey)
		kind, _, _ := strings.Cut(text, ":")
		kinds = append(kinds, kind)
	}
	return kinds
}

// Servers that were found empty long ago, by a process that then died, do not count by that, as they would if they had
// been marked as lost. Otherwise a quorum could begin beside a lock that they have granted.
func TestQuorum_EmptyServersDoNotCountByThemselves(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		for i, s := range w.Servers {
			kind, age := "empty", time.Hour
			if i == 0 {
				kind, age = "new", 0 // of another set, which begins. So none is marked as lost
			}
			s.Set(markerKey, fmt.Sprintf("%s:%d:x", kind, time.Now().Add(-age).UnixMicro()))
		}
		_, err := p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
		time.Sleep(beginLimit)
		world.WantErr(t, redistest.Err(p.quorum().TryLock(t.Context())), holdfast.ErrNoQuorum)
		if markers := w.markers(); !slices.Equal(markers, []string{"new", "lost", "lost"}) {
			t.Errorf("the markers are %q", markers)
		}
		began := w.Now()
		redises.Release(t, w.lock(p.quorum()))
		if took := w.Now() - began; took < 27*time.Second || took > 32*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// beginLimit is for how long nothing is marked as lost beside a marker that is new.
const beginLimit = 2 * time.Second

// A server that comes back without its data does not count until the longest lease is over.
// Otherwise B would be in with A.
func TestQuorum_Amnesia(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.began(), w.process()
		a.Unplug(2) // A holds two of three servers
		l := w.lock(a.quorum())
		w.WantHeldOn(2)
		held := l.Context(t.Context())

		time.Sleep(15 * time.Second)
		w.RestartEmpty(1)
		restarted := w.Now()
		world.WantErr(t, redistest.Err(b.quorum().TryLock(t.Context())), holdfast.ErrBusy)
		if text, _ := w.Servers[1].Get(markerKey); !strings.HasPrefix(text, "lost:") {
			t.Errorf("the marker is %q", text)
		}
		world.Equal(t, w.Servers[1].TTL(markerKey), 0, "the marker goes away after %v")
		var told time.Duration
		go func() { <-held.Done(); told = w.Now() }()
		next := w.lock(b.quorum())
		synctest.Wait()
		if told == 0 || told > w.Now() {
			t.Errorf("A was told at %v, B was in at %v", told, w.Now())
		}
		// A gave the first server back when A learned of its loss, and A never held the third. So B
		// need not wait for the second.
		if told-restarted > 10*time.Second+100*time.Millisecond {
			t.Errorf("A was told %v later", told-restarted)
		}
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		w.WantHeldOn(2) // not on the server that does not count
		redises.Release(t, next)

		b.Unplug(2)
		began := w.Now()
		redises.Release(t, w.lock(b.quorum()))
		if since := w.Now() - restarted; since < 30*time.Second || began-restarted > 29*time.Second {
			t.Errorf("it counts again after %v", since)
		}
	})
}

// If a member was down when the quorum began, the quorum later takes it for a server that lost its
// data. The other servers go on.
func TestQuorum_BeginsWithoutOne(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		p.Unplug(0)
		world.WantErr(t, redistest.Err(p.quorum().TryLock(t.Context())), holdfast.ErrNoQuorum)
		began := w.Now()
		redises.Release(t, w.lock(p.quorum())) // this looks the same as a loss of data on two servers
		if took := w.Now() - began; took < 29*time.Second || took > 32*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Many processes begin the same quorum at once. Those that lose a race give back what they took, and one
// of them is in soon.
func TestQuorum_BeginTogether(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		each := redistest.Count(t, 50)
		var inside, last atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			p := w.process()
			wg.Go(func() {
				for i := range each {
					l := w.lock(p.quorum())
					if i == 0 && w.Now() > time.Minute {
						t.Errorf("the first is in at %v", w.Now())
					}
					if inside.Add(1) > 1 {
						t.Error("two are in")
					}
					if before := last.Swap(l.Token()); before >= l.Token() {
						t.Errorf("token %d after %d", l.Token(), before)
					}
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					redises.Release(t, l)
				}
			})
		}
		wg.Wait()
		if markers := w.markers(); !slices.Equal(markers, slices.Repeat([]string{"new"}, 5)) {
			t.Errorf("the markers are %q", markers)
		}
	})
}

// try begins a TryLock of the process. wait returns the lease when it has ended, nil if it was refused.
func (w *stage) try(p *process) (wait func() *quorum.Lease) {
	granted := make(chan *quorum.Lease, 1)
	go func() {
		l, err := p.quorum().TryLock(w.T.Context())
		if err != nil {
			w.T.Logf("refused at %v: %v", w.Now(), err)
			l = nil
		}
		granted <- l
	}()
	return func() *quorum.Lease { return <-granted }
}

// wantOne checks that no two of the leases last, and releases them.
func (w *stage) wantOne(leases ...*quorum.Lease) {
	w.T.Helper()
	synctest.Wait()
	last := 0
	for _, l := range leases {
		if l != nil && l.Err() == nil {
			last++
		}
	}
	world.Equal(w.T, last, 1, "%d hold the lock at %v", w.Now())
	for _, l := range leases {
		if l != nil {
			_ = l.Release(w.T.Context())
		}
	}
}

// A has been granted the lock by servers 0 and 1 of a new quorum, and has not yet asked for their
// markers. Server 0 restarts without its data, and B begins the quorum. The marker that A then finds
// on server 0 is of after the restart, so it does not vouch for what A was granted before.
func TestQuorum_AmnesiaBetweenTheGrantAndTheMarker(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.process(), w.process()
		a.delay(0, delayed{markerKey, "empty", 50 * time.Millisecond})
		a.delay(1, delayed{markerKey, "empty", 50 * time.Millisecond})
		a.delay(2, delayed{name, "", 300 * time.Millisecond})
		first := w.try(a)
		time.Sleep(10 * time.Millisecond)
		w.RestartEmpty(0)
		second := w.try(b)()
		w.wantOne(second, first())
	})
}

// A begins a quorum, and marks only server 0. In its next round it is granted the lock there, and by
// server 1, for whose marker it has not asked yet. Server 0 restarts without its data, so all servers
// are empty, and B begins the quorum. That server 1 counts then says nothing of server 0 for A.
func TestQuorum_BeginsAgainWhileARoundIsUnderWay(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		a, b := w.process(), w.process()
		a.delay(1, delayed{markerKey, "new", 700 * time.Millisecond})
		a.delay(2, delayed{markerKey, "new", 700 * time.Millisecond})
		first := w.try(a)
		time.Sleep(400 * time.Millisecond)
		a.delay(1, delayed{markerKey, "empty", 100 * time.Millisecond})
		a.Nets[2].OnCommand(func(c redistest.Command) redistest.Fault {
			if len(c.Args) > 3 && c.Args[3] == tokenKey { // it asks for the lock
				return redistest.Delay(300 * time.Millisecond)
			}
			return redistest.Pass
		})
		time.Sleep(120 * time.Millisecond)
		if markers := w.markers(); !slices.Equal(markers, []string{"new", "empty", "empty"}) || w.HeldOn() != 2 {
			t.Fatalf("the markers are %q, and it is held on %d", markers, w.HeldOn())
		}
		w.RestartEmpty(0)
		second := w.try(b)()
		w.wantOne(second, first())
	})
}
