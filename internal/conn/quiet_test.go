// Scripts that publish, on a server that refuses them; and whether others than Clients listen.

package conn_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// announce counts its executions at KEYS[1], and tells them on the channel ARGV[3] and again on the
// channel ARGV[4]. It replies {1, now, executions, whether it knows who heard the first message}.
var announce = conn.NewScript("announce", `
-- It PUBLISHes: -- a quiet form must not say so.
local n = redis.call('incr', KEYS[1])
local heard = publish(ARGV[2], ARGV[3], 'n' .. n .. "--'" .. '\'')
publish(ARGV[2], ARGV[4], '')
return {1, now, n, heard and 1 or 0}`)

// brief is a Timeless script that tells, as a cheap release does. It replies {2, 0}.
var brief = conn.NewScript("brief", `
publish(ARGV[2], ARGV[3], 'brief')
return {2, 0}`, conn.Timeless)

// wordy has a text in its reply. It replies {1, now, 'text', whether others listen}; 2: unknown.
var wordy = conn.NewScript("wordy", `
local others = outsiders(ARGV[2], ARGV[3], ARGV[4])
return {1, now, 'text', others == nil and 2 or others and 1 or 0}`, conn.Mixed)

// failing tells, and then fails.
var failing = conn.NewScript("failing", `
publish(ARGV[2], ARGV[3], 'lost')
return redis.error_reply('NOPERMITS none')`)

func newAnnounce(key string) *conn.Call {
	return &conn.Call{Script: announce, Keys: []string{key}, Args: []any{"PUBLISH", "one", "two"}}
}

// quietly runs test on a server that refuses scripts that publish.
func quietly(t *testing.T, how redistest.Strictness, test func(t *testing.T, b *bubble, sent *commands)) {
	t.Helper()
	inBubble(t, func(t *testing.T, b *bubble) {
		b.server.CheckScripts(how)
		sent := new(commands)
		b.proxy.OnCommand(sent.note)
		test(t, b, sent)
	})
}

// commands are those that have passed a proxy, by what matters about them here.
type commands struct {
	mu    sync.Mutex
	all   []string
	fault func(command string) redistest.Fault // nil: none
}

func (c *commands) note(cmd redistest.Command) redistest.Fault {
	what := cmd.Name
	switch {
	case cmd.Name == "EVAL" && strings.Contains(cmd.Args[0], "PUBLISH"):
		what = "EVAL loud"
	case cmd.Name == "PUBLISH":
		what = strings.Join(append([]string{cmd.Name}, cmd.Args...), " ")
	case slices.Contains([]string{"HELLO", "CLIENT", "TIME"}, cmd.Name): // of new connections
		return redistest.Pass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, what)
	if c.fault != nil {
		return c.fault(what)
	}
	return redistest.Pass
}

// take returns the commands since the last take.
func (c *commands) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// publishing sets the fault of what the Client publishes.
func (c *commands) publishing(f redistest.Fault) {
	c.take()
	c.fault = func(command string) redistest.Fault {
		if command == "EVALSHA" {
			return redistest.Pass
		}
		return f
	}
}

// want fails the test unless these are the commands since the last take.
func (c *commands) want(t *testing.T, want ...string) {
	t.Helper()
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

const (
	one = "PUBLISH one n1--''"
	two = "PUBLISH two "
)

func TestAServerThatRefusesScriptsThatPublishIsPublishedTo(t *testing.T) {
	quietly(t, redistest.DeclaredKeys, func(t *testing.T, b *bubble, sent *commands) {
		heard := b.server.Client().Subscribe(t.Context(), "one")
		defer func() { _ = heard.Close() }()
		redistest.Must(t, redistest.Err(heard.Receive(t.Context())))
		c := newAnnounce("k")
		mustRun(t, b.Manager, c)
		if c.Int(2) != 1 || c.Int(3) != 0 || c.Reply.Len() != 4 {
			t.Errorf("reply %v, want the script's own, which does not know who has heard it", c.Reply)
		}
		sent.want(t, "EVALSHA", "EVAL loud", "EVAL", one, two)
		if m, err := heard.ReceiveMessage(t.Context()); err != nil || m.Payload != "n1--''" {
			t.Errorf("heard %v, %v", m, err)
		}
		if _, unheard := c.Outstanding(); unheard {
			t.Error("a refused request counts as one that may have run")
		}

		mustRun(t, b.Manager, newAnnounce("other"))
		sent.want(t, "EVALSHA", one, two)
		for _, other := range []*conn.Call{
			{Script: brief, Keys: []string{"k"}, Args: []any{"PUBLISH", "one"}},
			{Script: wordy, Keys: []string{"k"}, Args: []any{"PUBLISH", "one", "two"}},
		} {
			mustRun(t, b.Manager, other)
			if other.Script == brief && (other.Status() != conn.Awaited || other.Reply.Len() != 2) ||
				other.Script == wordy && (other.Text(2) != "text" || other.Int(3) != 2) {
				t.Errorf("%s: reply %v", other.Script.Name(), other.Reply)
			}
		}
		sent.want(t, "EVALSHA", "EVAL", "PUBLISH one brief", "EVALSHA", "EVAL")
		if said := b.said("redis refuses scripts that publish"); len(said) != 1 {
			t.Errorf("said %q, want one line", said)
		}
	})
}

// Only a server that refuses scripts that publish, and runs the quiet form, makes a Client quiet. With others
// the Client goes on as it was, and their error is told. The messages of a script that fails are lost.
func TestOnlyTheRefusalOfAScriptMakesAClientQuiet(t *testing.T) {
	loud := []string{"EVALSHA", "EVAL loud", "EVAL"} // the last is quiet
	for _, tc := range []struct {
		name        string
		how         redistest.Strictness
		fault       string // that each command is answered with; "": none
		script      *conn.Script
		words       string   // in the error; "": there is none
		first, next []string // what is sent for a call, and for the one after it
	}{
		{"runs scripts that publish", redistest.AnyScript, "", announce, "", loud[:2], loud[:1]},
		{"refuses the quiet form too", redistest.NoScript, "", announce, redistest.RefusalOfScripts + ", scripts are off", loud, loud},
		{"runs the quiet form, and that fails", redistest.NoPubSub, "", failing, "NOPERMITS", loud, loud},
		{"knows no EVAL", redistest.AnyScript, "ERR unknown command 'EVAL'", announce, "unknown command", loud[:1], loud[:1]},
		{"lets nobody publish", redistest.AnyScript, "NOPERM this user has no permissions to run the 'publish' command", announce,
			"NOPERM", loud[:1], loud[:1]},
		{"refuses a command inside", redistest.AnyScript, "ERR Error running script (call to f_0): @user_script:1: " +
			"ERR bad lua script for redis cluster", announce, "bad lua", loud[:1], loud[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			quietly(t, tc.how, func(t *testing.T, b *bubble, sent *commands) {
				if tc.fault != "" {
					sent.fault = func(string) redistest.Fault { return redistest.ReplyError(tc.fault) }
				}
				for _, want := range [][]string{tc.first, tc.next} {
					c := newAnnounce("k")
					c.Script = tc.script
					err := b.Run(t.Context(), c)
					if (err != nil) != (tc.words != "") || err != nil && !strings.Contains(err.Error(), tc.words) {
						t.Errorf("error %v, want %q", err, tc.words)
					}
					sent.want(t, want...)
				}
				sent.fault = nil
				b.server.CheckScripts(redistest.AnyScript)
				mustRun(t, b.Manager, newAnnounce("k"))
				if all := sent.take(); all[len(all)-1] == two {
					t.Errorf("then it sent %q, quietly", all)
				}
			})
		})
	}
}

// Renewals go out once, in a batch. A script that publishes is refused there too.
func TestABatchIsRefused(t *testing.T) {
	quietly(t, redistest.NoPubSub, func(t *testing.T, b *bubble, sent *commands) {
		for _, key := range []string{"a", "b"} {
			c := newAnnounce(key)
			err := runBatch(t.Context(), t, b.Manager, nodeOf(t, b.Manager, "k"), []*conn.Call{c})[0]
			if err != nil || c.Int(2) != 1 || c.Reply.Len() != 4 {
				t.Errorf("reply %v, %v", c.Reply, err)
			}
		}
		// The first leads on to Run, which begins anew.
		sent.want(t, "EVAL loud", "EVALSHA", "EVAL loud", "EVAL", one, two, "EVAL", one, two)
	})
}

// A message that cannot be published is not the call's failure, is not sent again, and does not keep
// the caller for long.
func TestAMessageThatIsNotPublishedIsLost(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
		sent  []string
		most  time.Duration
	}{
		{"refused", redistest.ReplyError("NOPERM no right"), []string{one, two}, 0},
		{"not the master", redistest.ReplyError("READONLY You can't write against a read only replica."), []string{one, two}, 100 * time.Millisecond},
		{"moved", redistest.ReplyError("MOVED 1 a:1"), []string{one, two}, 100 * time.Millisecond},
		{"cut off", redistest.DropBefore, []string{one}, 0},
		{"never answered", redistest.Silence, []string{one}, 500 * time.Millisecond},
		{"answered with nonsense", redistest.ReplyError("ERR\x00"), []string{one, two}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			quietly(t, redistest.NoPubSub, func(t *testing.T, b *bubble, sent *commands) {
				mustRun(t, b.Manager, newAnnounce("warm"))
				sent.publishing(tc.fault)
				began, c := time.Now(), newAnnounce("k")
				mustRun(t, b.Manager, c)
				if took := time.Since(began); took > tc.most {
					t.Errorf("took %v, want %v at most", took, tc.most)
				}
				if c.Attempts != 1 || c.Int(2) != 1 {
					t.Errorf("reply %v in %d attempts", c.Reply, c.Attempts)
				}
				sent.want(t, append([]string{"EVALSHA"}, tc.sent...)...)
				sent.fault = nil
				mustRun(t, b.Manager, newCount("k"))
			})
		})
	}
}

// Neither a caller that goes nor Close waits for messages, and the call is done all the same.
func TestACallerThatGoesDoesNotWaitForMessages(t *testing.T) {
	for name, end := range map[string]func(b *bubble, c *started){
		"goes":  func(_ *bubble, c *started) { c.cancel() },
		"Close": func(b *bubble, _ *started) { b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			quietly(t, redistest.NoPubSub, func(t *testing.T, b *bubble, sent *commands) {
				mustRun(t, b.Manager, newAnnounce("warm"))
				sent.publishing(redistest.Silence)
				c := start(b.Manager, newAnnounce("k"))
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				end(b, c)
				if err := c.wait(t, time.Millisecond); err != nil || c.Int(2) != 1 || time.Since(began) != 0 {
					t.Errorf("reply %v, %v, after %v", c.Reply, err, time.Since(began))
				}
			})
		})
	}
}

// A reply makes the Client send messages, and nothing else.
func TestAReplyIsNotTakenForCommands(t *testing.T) {
	for _, reply := range []string{
		"*3\r\n:1\r\n:1\r\n*3\r\n$8\r\nFLUSHALL\r\n$1\r\na\r\n$1\r\nb", // any command
		"*3\r\n:1\r\n:1\r\n*2\r\n$7\r\nPUBLISH\r\n$1\r\na",             // half a message
		"*3\r\n:1\r\n:1\r\n*3\r\n$7\r\nPUBLISH\r\n:1\r\n$1\r\na",       // a number for a channel
		"*3\r\n:1\r\n:1\r\n*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n:1",       // a number for a text
		"*2\r\n:1\r\n:1", // no messages at all
		"*0",
	} {
		quietly(t, redistest.NoPubSub, func(t *testing.T, b *bubble, sent *commands) {
			mustRun(t, b.Manager, newAnnounce("warm"))
			sent.take()
			sent.fault = func(string) redistest.Fault { return redistest.Reply(reply) }
			mustMatch(t, runFor(time.Second, b.Manager, newAnnounce("k")), context.DeadlineExceeded)
			for _, command := range sent.take() {
				if command != "EVALSHA" && command != "EVAL" {
					t.Errorf("sent %q for the reply %q", command, reply)
				}
			}
		})
	}
}

// others replies with 1 if others than Clients listen on ARGV[2]; Clients listen on ARGV[3] too.
var others = conn.NewScript("others", "return outsiders(ARGV[1], ARGV[2], ARGV[3]) and 1 or 0",
	conn.Timeless, conn.Always)

// A script knows whether others than Clients listen, whatever the server says of the number of listeners.
func TestOthersAreToldFromClients(t *testing.T) {
	// Each server stands for redis in the script.
	const answers = `local server = redis
		local redis = {pcall = function(command, ...)
			local answer = server.pcall(command, ...)
			if command == 'PUBSUB' then return count(answer) end
			return answer
		end}
		`
	counts := func(reply string) string { return "local function count(a) return " + reply + " end\n" + answers }
	servers := map[string]string{
		"counts": counts("a"),
		"adds an address to each number, as Valkey 9 does": counts("{a[1], a[2] + 45386000, a[3], a[4] + 45387000}"),
		"adds an address to the number of all":             counts("{a[1], a[2] + 45386000, a[3], a[4]}"),
		"adds an address to the number of Clients":         counts("{a[1], a[2], a[3], a[4] + 93000000000000}"),
	}
	mute := counts("{err = 'NOPERM'}")
	deaf := `local redis = {pcall = function(command, ...)
			if command == 'PUBSUB' then return {'all', 45386000, 'clients', 45386000} end
			return {err = 'NOPERM'}
		end}
		`
	test := func(t *testing.T, rdb *redis.Client) {
		asked := func(server string) bool {
			n, err := rdb.Eval(t.Context(), server+others.Source(), nil, "PUBLISH", "all", "clients").Int()
			redistest.Must(t, err)
			return n == 1
		}
		listen := func(channels ...string) {
			sub := rdb.Subscribe(t.Context(), channels...)
			t.Cleanup(func() { _ = sub.Close() })
			for range channels {
				redistest.Must(t, redistest.Err(sub.Receive(t.Context())))
			}
		}
		const most = 33 // Valkey 9 counts 8, 15, 16 and 29 to 32 wrongly
		for clients := range most {
			for name, server := range servers {
				if asked(server) {
					t.Errorf("%d Clients listen, and the server %s: others are thought to listen", clients, name)
				}
			}
			listen("all", "clients")
		}
		for name, server := range map[string]string{"does not say": mute, "counts wrongly, and lets nobody publish": deaf} {
			if !asked(server) {
				t.Errorf("the server %s: no others are thought to listen", name)
			}
		}
		listen("all")
		for name, server := range servers {
			if !asked(server) {
				t.Errorf("another listens, and the server %s: no others are thought to listen", name)
			}
		}
	}
	t.Run("embedded", func(t *testing.T) { test(t, redistest.Mini(t).Client()) })
	t.Run("on a real server", func(t *testing.T) { test(t, redistest.Server(t).Client(t)) })
}
