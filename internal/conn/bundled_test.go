// Requests that queue for one server go out in bundles, and each has an outcome of its own.

package conn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/strict"
)

// mostTogether is how many calls of put and drop one bundle has.
const mostTogether = 4

// put counts at KEYS[1], and notes ARGV[2] in the list KEYS[2]. It replies {1, now, count, ARGV[3]}.
// ARGV[3] is what calls in one bundle have in common.
var put = conn.NewScript("put", `
local count = redis.call('INCR', KEYS[1])
redis.call('RPUSH', KEYS[2], ARGV[2])
return {1, now, count, tonumber(ARGV[3])}
`)

// drop deletes KEYS[1], however late it runs, and notes ARGV[2] in the list KEYS[2]. It replies
// {0, 0}, or usually 1: the key was there.
var drop = conn.NewScript("drop", `
redis.call('RPUSH', KEYS[2], ARGV[2])
if redis.call('DEL', KEYS[1]) == 0 then
	return {0, 0}
end
return 1
`, conn.Timeless).Briefly(func(_ *conn.Call, n int64) [conn.BundleWidth]int64 { return [...]int64{n, 0, 70, 0} })

// note notes ARGV[2] in the list KEYS[1]. If that is no list, it returns the error, where put raises it.
var note = conn.NewScript("note", `
local notes = redis.pcall('RPUSH', KEYS[1], ARGV[2])
if type(notes) == 'table' then
	return notes
end
return {1, now, notes}
`)

var together = conn.NewBundle("put, drop and note", mostTogether, "",
	conn.Part{Script: put, Keys: 2, Args: 2, Common: []int{3}},
	conn.Part{Script: drop, Keys: 2, Args: 1},
	conn.Part{Script: note, Keys: 2, Args: 1})

// putOf returns a call of put on key, whose note is the key too.
func putOf(key string) *conn.Call {
	return &conn.Call{Script: put, Keys: []string{key, "notes"}, Args: []any{key, int64(7)}}
}

func dropOf(key string) *conn.Call {
	return &conn.Call{Script: drop, Keys: []string{key, "notes"}, Args: []any{"-" + key}}
}

// keyAt, putAt and mixedAt return the i-th key, a call of put on it, and a call of put, or for each third one of drop.
func keyAt(i int) string     { return fmt.Sprintf("k%02d", i) }
func putAt(i int) *conn.Call { return putOf(keyAt(i)) }
func mixedAt(i int) *conn.Call {
	if i%3 == 0 {
		return dropOf(keyAt(i))
	}
	return putAt(i)
}

// inLoadedBubble is inBubble with a server that has the scripts.
func inLoadedBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.load(t, put, drop, note)
		b.warm(t)
		test(t, b)
	})
}

// burst queues n calls while all connections are occupied, and then frees those. It returns the calls, and
// what is sent from then on. rule decides about that, one command at a time; nil lets everything pass.
func (b *bubble) burst(t *testing.T, n int, call func(i int) *conn.Call, rule func(c redistest.Command, bundled bool) redistest.Fault) ([]*started, *sentAs) {
	t.Helper()
	release, sent := b.occupy(t), new(sentAs)
	calls := queued(b.Manager, n, call)
	sent.watch(b.proxy, rule)
	release()
	return calls, sent
}

// sentAs counts the commands that pass the proxy: bundles, and scripts that run one call. It calls
// rule for each, one at a time, if that is not nil.
type sentAs struct {
	mu              sync.Mutex
	bundles, single int
	largest         int // how many calls the largest bundle had
}

func (s *sentAs) watch(p *redistest.FaultProxy, rule func(c redistest.Command, bundled bool) redistest.Fault) {
	p.OnCommand(func(c redistest.Command) redistest.Fault {
		if !isScript(c) {
			return redistest.Pass
		}
		bundled := len(c.Args) > 1 && c.Args[1] != "1" && c.Args[1] != "2"
		s.mu.Lock()
		defer s.mu.Unlock()
		if bundled {
			s.bundles++
			s.largest = max(s.largest, len(keysOf(c)))
		} else {
			s.single++
		}
		if rule == nil {
			return redistest.Pass
		}
		return rule(c, bundled)
	})
}

// answered fails t unless each of the calls is answered with its own key's count.
func answered(t *testing.T, calls []*started, counts int64) {
	t.Helper()
	for _, c := range calls {
		if err := c.wait(t, 5*time.Second); err != nil {
			t.Errorf("%s: %v", c.Keys[0], err)
		} else if c.Status() != conn.Done || c.Int(2) != counts || c.Int(3) != 7 || c.ServerTime() == 0 {
			t.Errorf("%s is answered %v", c.Keys[0], c.Reply.Numbers)
		}
	}
}

// A lone caller sends what it always sent: a bundle of one or two would cost more.
func TestRequestsThatQueueGoOutTogether(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		calls, sent := b.burst(t, 64, putAt, nil)
		answered(t, calls, 1)
		if sent.bundles < 64/mostTogether/2 || sent.single > 32 || sent.largest != mostTogether {
			t.Errorf("%d bundles, of %d at the most, and %d by themselves", sent.bundles, sent.largest, sent.single)
		}
		for i, c := range calls {
			if c.Attempts != 1 || c.Sent.IsZero() {
				t.Errorf("%d: %d attempts, sent %v", i, c.Attempts, c.Sent)
			}
		}
		few := new(sentAs)
		few.watch(b.proxy, nil)
		answered(t, queued(b.Manager, 1, func(int) *conn.Call { return putOf("alone") }), 1)
		answered(t, []*started{start(b.Manager, putOf("one")), start(b.Manager, putOf("other"))}, 1)
		if few.bundles != 0 || few.single != 3 {
			t.Errorf("%d bundles, %d by themselves", few.bundles, few.single)
		}
	})
}

// A bundle runs its calls in the order in which they came, whichever scripts they are of.
func TestABundleRunsInTheOrderOfArrival(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		var bundles [][]string
		for i := 0; i < 30; i += 6 {
			redistest.Must(t, b.server.Set(keyAt(i), "for every other drop"))
		}
		calls, _ := b.burst(t, 30, mixedAt, func(c redistest.Command, bundled bool) redistest.Fault {
			if bundled {
				bundles = append(bundles, keysOf(c))
			}
			return redistest.Pass
		})
		for i, c := range calls {
			want := []int64{conn.Done, 1, 7} // status, two numbers more
			switch i % 6 {
			case 0:
				want[1], want[2] = 70, 0
			case 3:
				want = []int64{conn.Refused, 0, 0}
			}
			err := c.wait(t, time.Second)
			if got := []int64{c.Status(), c.Int(2), c.Int(3)}; err != nil || !slices.Equal(got, want) || (i%3 == 0) != (c.ServerTime() == 0) {
				t.Errorf("call %d is answered %v, %v", i, c.Reply.Numbers, err)
			}
		}
		notes, err := b.server.List("notes")
		if err != nil || len(notes) != len(calls) || len(bundles) < 2 {
			t.Fatal(notes, err, bundles)
		}
		ran := make(map[string]int)
		for at, note := range notes {
			ran[strings.TrimPrefix(note, "-")] = at
		}
		for _, keys := range bundles {
			for i := 1; i < len(keys); i++ {
				if keys[i] <= keys[i-1] || ran[keys[i]] != ran[keys[i-1]]+1 {
					t.Errorf("a bundle of %v ran as %v", keys, notes)
				}
			}
		}
	})
}

// keysOf returns the first key of each call in a bundle.
func keysOf(c redistest.Command) (keys []string) {
	var n int
	_, _ = fmt.Sscan(c.Args[1], &n)
	for i := 0; i < n; i += 2 {
		keys = append(keys, c.Args[2+i])
	}
	return keys
}

// What is wrong with one key is its caller's error alone, and is told as a script by itself tells it, whether
// the script raises it or returns it.
func TestAnErrorInABundleIsItsOwn(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		for i := range 96 {
			if i%3 != 0 {
				b.server.HSet(keyAt(i), "a", "hash")
			}
		}
		calls, sent := b.burst(t, 96, func(i int) *conn.Call {
			if i%3 == 1 {
				return &conn.Call{Script: note, Keys: []string{keyAt(i), "notes"}, Args: []any{"note"}}
			}
			return putAt(i)
		}, nil)
		again := make(map[*conn.Script]int)
		for i, c := range calls {
			if i%3 == 0 {
				answered(t, calls[i:i+1], 1)
				continue
			}
			err := c.wait(t, time.Second)
			mustMatch(t, err, errs.WrongType)
			if text := fmt.Sprint(err); strings.Contains(text, "beside") || !strings.Contains(text, "WRONGTYPE") {
				t.Errorf("the error is %q", text)
			}
			if _, doubtful := c.Outstanding(); doubtful || c.Attempts > 2 {
				t.Errorf("%s was answered each time: %d attempts, in doubt %v", c.Keys[0], c.Attempts, doubtful)
			}
			again[c.Script] += c.Attempts - 1
		}
		if sent.bundles == 0 || again[put] == 0 || again[note] == 0 {
			t.Errorf("%d bundles, %v were sent again", sent.bundles, again)
		}
	})
}

// A server may refuse a bundle for one of its keys, or because a slot is on the move. Each request is
// then sent by itself, and for a while no bundle is sent.
func TestABundleThatIsRefusedGoesOutOneByOne(t *testing.T) {
	for _, refusal := range []string{
		"NOPERM this user has no permissions to access one of the keys used as arguments",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"MOVED 12182 127.0.0.1:1",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"ERR bad lua script for redis cluster",
	} {
		t.Run(refusal, func(t *testing.T) {
			inLoadedBubble(t, func(t *testing.T, b *bubble) {
				for i, wanted := range []bool{true, false, true} { // the second, soon after one was refused
					time.Sleep(time.Duration(i/2) * 1100 * time.Millisecond)
					calls, sent := b.burst(t, 24, putAt, func(_ redistest.Command, bundled bool) redistest.Fault {
						if bundled {
							return redistest.ReplyError(refusal)
						}
						return redistest.Pass
					})
					answered(t, calls, 1)
					if (sent.bundles > 0) != wanted {
						t.Errorf("burst %d: %d bundles", i, sent.bundles)
					}
					b.server.FlushAll()
				}
			})
		})
	}
}

// A request that a failure has made doubtful goes out by itself, and its doubt is told.
func TestABundleWhoseReplyIsLostIsSentAgainOneByOne(t *testing.T) {
	for _, fault := range []redistest.Fault{redistest.CloseAfterExec, redistest.HalfReply, redistest.DropBefore, redistest.Silence} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			inLoadedBubble(t, func(t *testing.T, b *bubble) {
				lost, again := 0, 0
				calls, _ := b.burst(t, 24, putAt, func(_ redistest.Command, bundled bool) redistest.Fault {
					if bundled && lost == 0 {
						lost++
						return fault
					}
					return redistest.Pass
				})
				for _, c := range calls {
					redistest.Must(t, c.wait(t, 5*time.Second))
					notAfter, doubtful := c.Outstanding()
					if c.Attempts > 1 {
						again++
					}
					if (doubtful && notAfter != 0) != (c.Attempts > 1) {
						t.Errorf("%s: %d attempts, outstanding %v until %d", c.Keys[0], c.Attempts, doubtful, notAfter)
					}
					if n := c.Int(2); n < 1 || n > 2 || n == 2 && c.Attempts < 2 {
						t.Errorf("%s ran %d times in %d attempts", c.Keys[0], n, c.Attempts)
					}
				}
				if again < 3 { // as many make a bundle
					t.Errorf("%d requests were sent again", again)
				}
			})
		})
	}
}

// A script that the server has lost is sent with its text again, and nobody hears of it.
func TestABundleIsLoadedWhereMissing(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		// Not each round meets a connection that had the script.
		for round := range int64(20) {
			calls, sent := b.burst(t, 24, putAt, nil)
			answered(t, calls, round+1)
			if sent.bundles == 0 {
				t.Errorf("round %d: no bundle", round)
			}
			redistest.Must(t, b.server.Client().ScriptFlush(t.Context()).Err())
		}
	})
}

// A bundle that runs late does nothing, but for what its scripts do however late they run.
func TestABundleThatRunsLateDoesNothing(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		cut := make(chan struct{})
		calls, sent := b.burst(t, 24, mixedAt, func(_ redistest.Command, bundled bool) redistest.Fault {
			if bundled {
				return redistest.HoldUntil(cut)
			}
			return loading
		})
		time.Sleep(conn.Window - 100*time.Millisecond)
		for _, c := range calls {
			c.cancel()
		}
		for _, c := range calls {
			mustMatch(t, c.wait(t, time.Second), context.Canceled)
		}
		time.Sleep(200 * time.Millisecond)
		close(cut)
		synctest.Wait()
		notes, _ := b.server.List("notes")
		for _, note := range notes {
			if !strings.HasPrefix(note, "-") {
				t.Errorf("%s was put late", note)
			}
		}
		if sent.bundles == 0 || len(notes) == 0 {
			t.Errorf("%d bundles, %d drops", sent.bundles, len(notes))
		}
	})
}

// Calls that have not the same in common do not meet in a bundle, nor do those with another not-after, nor
// those with keys of another slot of a cluster.
func TestWhatDoesNotFitGoesOutApart(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		b.onCluster(t)
		b.warm(t)
		calls, sent := b.burst(t, 160, func(i int) *conn.Call {
			tag := fmt.Sprintf("{%d}", i%4/2)
			c := &conn.Call{Script: put, Keys: []string{fmt.Sprint(tag, i), tag + "notes"}, Args: []any{"call", int64(i % 2)}}
			if i >= 140 {
				c.Args[0], c.Until = "lone", time.Now().Add(time.Duration(500+i)*time.Millisecond)
			}
			return c
		}, func(c redistest.Command, bundled bool) redistest.Fault {
			n, _ := strconv.Atoi(c.Args[1])
			for _, key := range c.Args[2 : 2+n] {
				if keys.Slot(key) != keys.Slot(c.Args[2]) {
					t.Errorf("keys of several slots: %q", c.Args[2:2+n])
				}
			}
			if bundled && slices.Contains(c.Args, "lone") {
				t.Errorf("with another not-after: %q", c.Args)
			}
			return redistest.Pass
		})
		for i, c := range calls {
			if err := c.wait(t, time.Second); err != nil || c.Attempts != 1 || c.Int(3) != int64(i%2) {
				t.Errorf("%d is answered %v, %v in %d attempts", i, c.Reply.Numbers, err, c.Attempts)
			}
		}
		if sent.bundles == 0 {
			t.Error("no bundle was sent")
		}
	})
}

// Callers leave while their requests queue, or while a pipeline or a bundle carries them. The others are
// answered, and those that left know whether their requests may run.
func TestCallersLeaveABundle(t *testing.T) {
	for name, call := range map[string]func(i int) *conn.Call{"a pipeline": numbered, "a bundle": putAt} {
		t.Run(name, func(t *testing.T) {
			inLoadedBubble(t, func(t *testing.T, b *bubble) {
				release := b.occupy(t)
				calls := queued(b.Manager, 32, call)
				leave := func(which int) {
					for i := which; i < len(calls); i += 4 {
						calls[i].cancel()
					}
					synctest.Wait()
					for i := which; i < len(calls); i += 4 {
						if !calls[i].isDone() {
							t.Errorf("%d has not returned", i)
						}
					}
				}
				leave(0)
				held := make(chan struct{})
				b.proxy.OnCommand(onScripts(redistest.HoldReply(held)))
				release()
				synctest.Wait()
				leave(1)
				close(held)
				on := 0
				for i, c := range calls {
					err := c.wait(t, time.Second)
					_, doubtful := c.Outstanding()
					ran, _ := b.server.Get(c.Keys[0])
					switch {
					case i%4 == 0 && (!errors.Is(err, context.Canceled) || doubtful || ran != ""):
						t.Errorf("%d left the queue: %v, in doubt %v, ran %q times", i, err, doubtful, ran)
					case i%4 == 1 && (!errors.Is(err, context.Canceled) || doubtful != (ran == "1")):
						t.Errorf("%d left on the way: %v, in doubt %v, ran %q times", i, err, doubtful, ran)
					case i%4 > 1 && (err != nil || c.Int(2) != 1 || c.Attempts != 1 || doubtful):
						t.Errorf("%d stayed: %v, %v in %d attempts, in doubt %v", i, c.Reply.Numbers, err, c.Attempts, doubtful)
					}
					if i%4 == 1 && doubtful {
						on++
					}
				}
				if on == 0 {
					t.Error("none left on the way")
				}
			})
		})
	}
}

func TestAServerThatReadsScriptsFindsNothingInABundle(t *testing.T) {
	found, err := strict.Read("bundle", together.Source())
	redistest.Must(t, err)
	for _, what := range slices.Concat(found.Loose, found.Nested, found.Unpacks, found.Hidden, found.Keyless) {
		t.Error(what)
	}
}

func TestAScriptThatDoesNotFitABundleIsNamed(t *testing.T) {
	for body, trait := range map[string]conn.Trait{
		"return {1, now, #KEYS}": 0, "return {1, now, unpack(ARGV)}": 0, "return {1, now, ARGV[n]}": 0, "return {1, now, ARGV[9]}": 0,
		"return {1, now, 'text'}": conn.Mixed,
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a bundle is made of it", body)
				}
			}()
			conn.NewBundle("x", 4, "", conn.Part{Script: conn.NewScript("x", body+"\n", trait), Keys: 1, Args: 2})
		}()
	}
}
