// Requests that queue for one server go out in bundles, and each has an outcome of its own.

package conn_test

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

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
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
// {whether it was there, 0}.
var drop = conn.NewScript("drop", `
redis.call('RPUSH', KEYS[2], ARGV[2])
return {redis.call('DEL', KEYS[1]), 0}
`, conn.Timeless)

var together = conn.NewBundle("put and drop", mostTogether, "",
	conn.Part{Script: put, Keys: 2, Args: 2, Common: []int{3}},
	conn.Part{Script: drop, Keys: 2, Args: 1})

// putOf returns a call of put on key, whose note is the key too.
func putOf(key string) *conn.Call {
	return &conn.Call{Script: put, Keys: []string{key, "notes"}, Args: []any{key, int64(7)}}
}

func dropOf(key string) *conn.Call {
	return &conn.Call{Script: drop, Keys: []string{key, "notes"}, Args: []any{"-" + key}}
}

// inLoadedBubble is inBubble with a server that has the scripts.
func inLoadedBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	inBubble(t, func(t *testing.T, b *bubble) {
		for _, s := range []*conn.Script{put, drop} {
			if err := b.server.Client().ScriptLoad(t.Context(), s.Source()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		b.warm(t)
		test(t, b)
	})
}

// queued starts n calls while all connections are occupied.
func queued(m *conn.Manager, n int, call func(i int) *conn.Call) []*started {
	calls := make([]*started, n)
	for i := range calls {
		calls[i] = start(m, call(i))
		synctest.Wait()
	}
	return calls
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
			var keys int
			_, _ = fmt.Sscan(c.Args[1], &keys)
			s.bundles++
			s.largest = max(s.largest, keys/2)
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

func TestRequestsThatQueueGoOutTogether(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		release := b.occupy(t)
		calls := queued(b.Manager, 64, func(i int) *conn.Call { return putOf(fmt.Sprintf("k%02d", i)) })
		var sent sentAs
		sent.watch(b.proxy, nil)
		release()
		answered(t, calls, 1)
		if sent.bundles < 64/mostTogether/2 || sent.single > 32 || sent.largest != mostTogether {
			t.Errorf("%d bundles, of %d at the most, and %d by themselves", sent.bundles, sent.largest, sent.single)
		}
		for i, c := range calls {
			if c.Attempts != 1 || c.Sent.IsZero() {
				t.Errorf("%d: %d attempts, sent %v", i, c.Attempts, c.Sent)
			}
		}
	})
}

// A lone caller sends what it always sent: a bundle of one would cost more.
func TestFewRequestsGoOutByThemselves(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		var sent sentAs
		sent.watch(b.proxy, nil)
		mustRun(t, b.Manager, putOf("k"))
		answered(t, queued(b.Manager, 2, func(i int) *conn.Call { return putOf(fmt.Sprint(i)) }), 1)
		if sent.bundles != 0 {
			t.Errorf("%d bundles", sent.bundles)
		}
	})
}

// A bundle runs its calls in the order in which they came, whichever scripts they are of.
func TestABundleRunsInTheOrderOfArrival(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		release := b.occupy(t)
		calls := queued(b.Manager, 30, func(i int) *conn.Call {
			if i%3 == 0 {
				return dropOf(fmt.Sprintf("k%02d", i))
			}
			return putOf(fmt.Sprintf("k%02d", i))
		})
		var sent sentAs
		var bundles [][]string
		sent.watch(b.proxy, func(c redistest.Command, bundled bool) redistest.Fault {
			if bundled {
				bundles = append(bundles, keysOf(c))
			}
			return redistest.Pass
		})
		release()
		for i, c := range calls {
			want := int64(1)
			if i%3 == 0 {
				want = 0 // nothing was there to drop
			}
			if err := c.wait(t, time.Second); err != nil || c.Status() != want {
				t.Errorf("call %d is answered %v, %v", i, c.Reply.Numbers, err)
			}
			if i%3 == 0 && c.ServerTime() != 0 {
				t.Errorf("call %d of a script without the time is answered %v", i, c.Reply.Numbers)
			}
		}
		if len(bundles) < 2 {
			t.Errorf("%d bundles", len(bundles))
		}
		notes, err := b.server.List("notes")
		if err != nil || len(notes) != len(calls) {
			t.Fatal(notes, err)
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

// What is wrong with one key is its caller's error alone, and is told as a script by itself tells it.
func TestAnErrorInABundleIsItsOwn(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		wrong := func(i int) bool { return i%3 != 0 }
		for i := range 96 {
			if wrong(i) {
				b.server.HSet(fmt.Sprintf("k%02d", i), "a", "hash")
			}
		}
		release := b.occupy(t)
		calls := queued(b.Manager, 96, func(i int) *conn.Call { return putOf(fmt.Sprintf("k%02d", i)) })
		var sent sentAs
		sent.watch(b.proxy, nil)
		release()
		var right []*started
		again := 0
		for i, c := range calls {
			if !wrong(i) {
				right = append(right, c)
				continue
			}
			err := c.wait(t, time.Second)
			mustMatch(t, err, errs.WrongType)
			if text := fmt.Sprint(err); strings.Contains(text, "beside") || !strings.Contains(text, "WRONGTYPE") {
				t.Errorf("the error is %q", text)
			}
			if c.Attempts > 2 {
				t.Errorf("%s was sent %d times", c.Keys[0], c.Attempts)
			}
			if _, doubtful := c.Outstanding(); doubtful {
				t.Errorf("%s was answered each time, and is in doubt", c.Keys[0])
			}
			again += c.Attempts - 1
		}
		answered(t, right, 1)
		if sent.bundles == 0 || again == 0 {
			t.Errorf("%d bundles, %d were sent again", sent.bundles, again)
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
				burst := func() (bundles int) {
					release := b.occupy(t)
					calls := queued(b.Manager, 24, func(i int) *conn.Call { return putOf(fmt.Sprintf("k%02d", i)) })
					var sent sentAs
					sent.watch(b.proxy, func(_ redistest.Command, bundled bool) redistest.Fault {
						if bundled {
							return redistest.ReplyError(refusal)
						}
						return redistest.Pass
					})
					release()
					answered(t, calls, 1)
					b.server.FlushAll()
					return sent.bundles
				}
				if burst() == 0 {
					t.Fatal("no bundle was sent")
				}
				if n := burst(); n != 0 {
					t.Errorf("%d bundles soon after one was refused", n)
				}
				time.Sleep(1100 * time.Millisecond)
				if burst() == 0 {
					t.Error("no bundle is sent any more")
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
				release := b.occupy(t)
				calls := queued(b.Manager, 24, func(i int) *conn.Call { return putOf(fmt.Sprintf("k%02d", i)) })
				var sent sentAs
				lost := 0
				sent.watch(b.proxy, func(_ redistest.Command, bundled bool) redistest.Fault {
					if bundled && lost == 0 {
						lost++
						return fault
					}
					return redistest.Pass
				})
				release()
				again := 0
				for _, c := range calls {
					if err := c.wait(t, 5*time.Second); err != nil {
						t.Fatal(err)
					}
					notAfter, doubtful := c.Outstanding()
					if c.Attempts > 1 {
						again++
						if !doubtful || notAfter == 0 {
							t.Errorf("%s: a request without an answer is forgotten", c.Keys[0])
						}
					}
					if n := c.Int(2); n < 1 || n > 2 || n == 2 && c.Attempts < 2 {
						t.Errorf("%s ran %d times in %d attempts", c.Keys[0], n, c.Attempts)
					}
				}
				if again < minTogether {
					t.Errorf("%d requests were sent again", again)
				}
			})
		})
	}
}

// minTogether is how many requests make a bundle.
const minTogether = 3

// A script that the server has lost is sent with its text again, and nobody hears of it.
func TestABundleIsLoadedWhereMissing(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		for round := range int64(3) {
			release := b.occupy(t)
			calls := queued(b.Manager, 24, func(i int) *conn.Call { return putOf(fmt.Sprintf("k%02d", i)) })
			var sent sentAs
			sent.watch(b.proxy, nil)
			release()
			answered(t, calls, round+1)
			if sent.bundles == 0 {
				t.Errorf("round %d: %d bundles", round, sent.bundles)
			}
			if err := b.server.Client().ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A bundle that runs late does nothing, but for what its scripts do however late they run.
func TestABundleThatRunsLateDoesNothing(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		release := b.occupy(t)
		calls := queued(b.Manager, 24, func(i int) *conn.Call {
			if i%3 == 0 {
				return dropOf(fmt.Sprintf("k%02d", i))
			}
			return putOf(fmt.Sprintf("k%02d", i))
		})
		cut := make(chan struct{})
		var sent sentAs
		sent.watch(b.proxy, func(_ redistest.Command, bundled bool) redistest.Fault {
			if bundled {
				return redistest.HoldUntil(cut)
			}
			return redistest.ReplyError("LOADING")
		})
		release()
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
		drops := 0
		for _, note := range notes {
			if !strings.HasPrefix(note, "-") {
				t.Errorf("%s was put late", note)
			}
			drops++
		}
		if sent.bundles == 0 || drops == 0 {
			t.Errorf("%d bundles, %d drops", sent.bundles, drops)
		}
	})
}

// Calls go by themselves if they wait for replicas, and those that have not the same in common do
// not meet.
func TestWhatDoesNotFitGoesOutApart(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		release := b.occupy(t)
		calls := queued(b.Manager, 40, func(i int) *conn.Call {
			c := putOf(fmt.Sprintf("k%02d", i))
			c.Args[1] = int64(i % 2)
			return c
		})
		lone := queued(b.Manager, 8, func(i int) *conn.Call {
			c := putOf(fmt.Sprintf("u%02d", i))
			c.Until = time.Now().Add(time.Duration(500+i) * time.Millisecond)
			return c
		})
		var sent sentAs
		var mixed []string
		sent.watch(b.proxy, func(c redistest.Command, bundled bool) redistest.Fault {
			if bundled && slices.ContainsFunc(c.Args, func(s string) bool { return strings.HasPrefix(s, "u0") }) {
				mixed = append(mixed, strings.Join(c.Args, " "))
			}
			return redistest.Pass
		})
		release()
		for i, c := range calls {
			if err := c.wait(t, time.Second); err != nil || c.Int(3) != int64(i%2) {
				t.Errorf("%d is answered %v, %v", i, c.Reply.Numbers, err)
			}
		}
		for _, c := range lone {
			if err := c.wait(t, time.Second); err != nil || c.Attempts != 1 {
				t.Error(err, c.Attempts)
			}
		}
		if sent.bundles == 0 || len(mixed) > 0 {
			t.Errorf("%d bundles, and with another not-after: %q", sent.bundles, mixed)
		}
	})
}

// Callers leave while their requests queue, or while a bundle carries them. The others are answered.
func TestCallersLeaveABundle(t *testing.T) {
	inLoadedBubble(t, func(t *testing.T, b *bubble) {
		release := b.occupy(t)
		calls := queued(b.Manager, 32, func(i int) *conn.Call { return putOf(fmt.Sprintf("k%02d", i)) })
		for i := 0; i < len(calls); i += 4 {
			calls[i].cancel()
		}
		synctest.Wait()
		held := make(chan struct{})
		var sent sentAs
		sent.watch(b.proxy, func(_ redistest.Command, bundled bool) redistest.Fault {
			if bundled {
				return redistest.HoldReply(held)
			}
			return redistest.Pass
		})
		release()
		synctest.Wait()
		for i := 1; i < len(calls); i += 4 {
			calls[i].cancel()
		}
		synctest.Wait()
		close(held)
		on := 0
		for i, c := range calls {
			err := c.wait(t, time.Second)
			_, doubtful := c.Outstanding()
			ran, _ := b.server.Get(c.Keys[0])
			switch {
			case i%4 == 0 && (!errors.Is(err, context.Canceled) || doubtful || ran != ""):
				t.Errorf("%d left the queue: %v, in doubt %v, ran %q times", i, err, doubtful, ran)
			case i%4 == 1 && err != nil && doubtful != (ran == "1"):
				t.Errorf("%d left a bundle: %v, in doubt %v, ran %q times", i, err, doubtful, ran)
			case i%4 > 1 && (err != nil || c.Int(2) != 1):
				t.Errorf("%d stayed: %v, %v", i, c.Reply.Numbers, err)
			}
			if i%4 == 1 && doubtful {
				on++
			}
		}
		if sent.bundles == 0 || on == 0 {
			t.Errorf("%d bundles, %d left one", sent.bundles, on)
		}
	})
}

// Another client of a real server with few rights: one key that the user may not touch.
func TestABundleWithAKeyThatIsDenied(t *testing.T) {
	server := redistest.Server(t)
	ctx := t.Context()
	if err := server.Admin().Do(ctx, "ACL", "SETUSER", "few", "on", ">pw", "~k*", "~notes", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	m := newManager(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "few", "pw" }))
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			for range 20 {
				key := fmt.Sprintf("k%03d", i)
				if i == 100 {
					key = "other"
				}
				c := putOf(key)
				err := m.Run(ctx, c)
				if i == 100 {
					if !errors.Is(err, errs.Denied) {
						t.Errorf("the key that is denied: %v", err)
					}
				} else if err != nil || c.Int(3) != 7 {
					t.Errorf("%s: %v %v", key, c.Reply.Numbers, err)
				}
			}
		})
	}
	wg.Wait()
}

// The text of a bundle has each body once, with numbers of its own for keys and arguments. A server
// that reads scripts before it runs them finds nothing in it.
func TestTheTextOfABundle(t *testing.T) {
	found, err := strict.Read("bundle", together.Source())
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range slices.Concat(found.Loose, found.Nested, found.Unpacks, found.Hidden, found.Keyless) {
		t.Error(what)
	}
	for _, want := range []string{
		"redis.call('INCR', KEYS[key + 1])", "redis.call('RPUSH', KEYS[key + 2], ARGV[arg + 1])",
		"tonumber(ARGV[3])", "return {redis.call('DEL', KEYS[key + 1]), 0}",
		"local keys, args, firstarg = {2, 2}, {1, 1}, 3",
	} {
		if n := strings.Count(together.Source(), want); n != 1 && !strings.HasPrefix(want, "redis.call('RPUSH'") || n == 0 {
			t.Errorf("%q stands %d times in\n%s", want, n, together.Source())
		}
	}
}

func TestAScriptThatDoesNotFitABundleIsNamed(t *testing.T) {
	for _, body := range []string{
		"return {1, now, #KEYS}", "return {1, now, unpack(ARGV)}", "return {1, now, ARGV[n]}", "return {1, now, ARGV[9]}",
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a bundle is made of it", body)
				}
			}()
			conn.NewBundle("x", 4, "", conn.Part{Script: conn.NewScript("x", body+"\n"), Keys: 1, Args: 2})
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("a bundle is made of a script that answers with texts")
		}
	}()
	conn.NewBundle("x", 4, "", conn.Part{Script: conn.NewScript("x", "return {1, now, 'text'}\n", conn.Mixed), Keys: 1, Args: 2})
}
