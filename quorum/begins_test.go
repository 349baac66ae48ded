// A server restarts without its data while a quorum begins, and requests of another process are
// still on their way.

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// A and B find a new quorum at the same time. A begins it, and has the lock on servers 0 and 1,
// which B has missed. Server 1 restarts without its data, and only then what B sent it arrives:
// either the mark with which B begins the quorum too, or B's first question. B must not have the
// lock on servers 1 and 2 while A has it.
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
				if held.Err() != nil {
					t.Error(held.Err())
				}
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

// Two processes begin a quorum, one of whose servers is slower than the others, to both or to the one
// that marks it. None of them takes a server that has answered, or that the other is about to mark, for
// one that has lost its data.
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

// Servers that were found empty long ago, by a process that then died, do not count by that, as they
// would if they had been marked as lost. Otherwise a quorum could begin beside a lock that they have
// granted.
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
		_, err = p.quorum().TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrNoQuorum)
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
