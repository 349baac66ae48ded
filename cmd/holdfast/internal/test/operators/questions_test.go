// Questions of scripts: is it held, who holds it for long, and was the tick taken; and what a release by force leaves.

package operators

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// This catches a thing that is held and is reported free, or the other way round, of any kind; and an answer about
// what nobody can hold.
func TestHeldAndWaitAnswerByTheirCode(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod-1")
	redistest.Must(t, c.PermitSemaphore("permits").SetPermits(t.Context(), 2))
	for name, l := range map[string]holdfast.Locker{
		"mutex": c.Mutex("mutex"), "a*b": c.Mutex("a*b"), "reader": c.RWMutex("reader").RLocker(), "writer": c.RWMutex("writer"),
		"permits": c.PermitSemaphore("permits").Locker(1),
	} {
		run(t, server, "held", name).want(t, 1)
		run(t, server, "wait", name, "--try").want(t, 0)
		lease := clienttest.Grab(t, l)
		if d := run(t, server, "held", name); d.code != 0 || d.out+d.err != "" {
			t.Errorf("%s: %d, %s%s", name, d.code, d.out, d.err)
		}
		run(t, server, "wait", name, "-n").want(t, 75, "is held: ")
		waits := start(t, server, "wait", name)
		subscribed(t, server)
		redistest.Check(t, lease.Release(t.Context()))
		waits.Expect("exit 0")
		run(t, server, "held", name).want(t, 1)
	}
	clienttest.Grab(t, c.Mutex("mutex"))
	run(t, server, "wait", "mutex", "-w", "2s").want(t, 75, "still held")
	silent := start(t, server, "wait", "mutex", "-w", "4s", "--timeout", "1m")
	subscribed(t, server)
	server.Freeze()
	silent.Expect("exit 69")
	server.Thaw()
	run(t, server, "latch", "set", "latch", "2").want(t, 0)
	server.Admin().LPush(t.Context(), "list", "x")
	for _, name := range []string{"latch", "list"} {
		run(t, server, "held", name).want(t, 64, "which nobody holds")
		run(t, server, "wait", name).want(t, 64, "which nobody holds")
	}
}

// subscribed waits until somebody listens by a pattern, as watch and wait do.
func subscribed(t *testing.T, server *redistest.Proc) {
	t.Helper()
	redistest.Eventually(t, soon, "a subscription", func() error {
		if n := server.Admin().PubSubNumPat(t.Context()).Val(); n == 0 {
			return fmt.Errorf("nobody listens")
		}
		return nil
	})
}

func TestLsSelectsAndSorts(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod-1")
	clienttest.Grab(t, c.Mutex("b-old"))
	time.Sleep(20 * time.Millisecond) // two grants of one millisecond have no order
	clienttest.Grab(t, c.Mutex("a-new"))
	clienttest.Grab(t, c.RWMutex("c-reader").RLocker())
	go func() { _, _ = client(t, server, "pod-2").Mutex("a-new").Lock(t.Context()) }()
	waiting(t, server, "a-new", 1)
	names := func(args ...string) string {
		t.Helper()
		d := run(t, server, append([]string{"ls"}, args...)...)
		var all []string
		for line := range strings.Lines(d.out) {
			all = append(all, strings.Fields(line)[0])
		}
		return strings.Join(all, " ") + d.err
	}
	for want, args := range map[string][]string{
		"NAME a-new b-old c-reader":             nil,
		"NAME b-old a-new c-reader":             {"--sort", "age"},
		"NAME a-new b-old c-reader ":            {"--sort", "waiters"},
		"NAME a-new":                            {"--waiters"},
		"NAME b-old":                            {"b-old"},
		"holdfast: 1 name that is held is left": {"--older", "1h"},
		"NAME a-new b-oldholdfast: 1 name":      {"--older", "1ms"},
	} {
		if got := names(args...); !strings.HasPrefix(got+" ", want) {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	run(t, server, "ls", "free-name").want(t, 0)
	run(t, server, "ls", "--sort", "nonsense").want(t, 64)
	run(t, server, "ls", "--older", "0s").want(t, 64)
}

// A column is as wide as what a terminal shows of it: names in Chinese push nothing aside.
func TestColumnsStandBelowEachOther(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod-1")
	clienttest.Grab(t, c.Mutex("订单:42"))
	clienttest.Grab(t, c.Mutex("orders:42"))
	d := run(t, server, "ls")
	d.want(t, 0, "NAME       KIND   ", "\norders:42  mutex  ", "\n订单:42    mutex  ")
}

func TestTick(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod-1")
	const at, same = "2026-11-22T03:00:00Z", "2026-11-22T04:00+01:00"
	when, _ := time.Parse(time.RFC3339, at)
	run(t, server, "tick", "show", "report", at).want(t, 0, "report at "+at+": not taken")
	run(t, server, "tick", "show", "report", at, "--json").want(t, 0, `"taken":false`)
	take := func() bool {
		won, err := c.Tick(t.Context(), "report", when, time.Hour)
		redistest.Must(t, err)
		return won
	}
	if !take() || take() {
		t.Fatal("it is not taken once")
	}
	whole := server.Admin().Get(t.Context(), "holdfast_tick:{report}:"+at).Val()
	for _, args := range [][]string{{"tick", "show", "report", at}, {"tick", "show", "report", same, "--json"}} {
		d := run(t, server, args...)
		if d.want(t, 0, whole[:8]); strings.Contains(d.out, whole) {
			t.Errorf("the whole owner: %s", d.out)
		}
	}
	run(t, server, "tick", "forget", "report", at).want(t, 64, "--yes")
	run(t, server, "tick", "forget", "report", same, "--yes").want(t, 0)
	run(t, server, "tick", "forget", "report", at, "--yes").want(t, 0, "nobody has taken it")
	if !take() {
		t.Error("it is not forgotten")
	}
	run(t, server, "tick", "show", "report", "yesterday").want(t, 64, "no time such as")
}

// Whoever looks within a day sees who has taken what from whom; and a user who may not write that can release.
func TestAReleaseByForceIsNoted(t *testing.T) {
	server := redistest.Server(t)
	c := client(t, server, "pod\x1b-1")
	t.Setenv("SSH_CONNECTION", "10.0.0.7 51515 10.0.0.1 22")
	clienttest.Grab(t, c.Mutex("x"))
	known(t, server, "x", "pod\x1b-1")
	run(t, server, "inspect", "x", "--json").want(t, 0, `"forced":[]`)
	run(t, server, "release", "x", "--force", "--yes", "--as", "ticket 7").want(t, 0, "x: taken from ",
		"holdfast: x was taken from ", "@", "ticket 7", "by ssh from 10.0.0.7", "Z")
	run(t, server, "inspect", "x").want(t, 0, "x: free\n", "  forced   20", "ago) by ", "@", "ticket 7", "10.0.0.7: taken from ", `pod\`)
	d := run(t, server, "inspect", "x", "--json")
	if d.want(t, 0, `"forced":[{"at":"20`, `"by":"`, `"from":["`); strings.Contains(d.out, "\x1b") {
		t.Errorf("%q", d.out)
	}
	key := "holdfast_forced:{x}"
	if left := server.Admin().TTL(t.Context(), key).Val(); left <= 23*time.Hour || left > 24*time.Hour {
		t.Errorf("kept for %v", left)
	}
	for range 12 {
		run(t, server, "acquire", "x", "--lease", "1m").want(t, 0)
		run(t, server, "release", "x", "--force", "--yes").want(t, 0)
	}
	if n := strings.Count(server.Admin().Get(t.Context(), key).Val(), "\n"); n != 9 {
		t.Errorf("%d records", n+1)
	}
	run(t, server, "ls").want(t, 0)

	redistest.Must(t, server.Admin().Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p",
		"~x", "~redisson_*", "~holdfast_lock_*", "&*", "+@all").Err())
	run(t, server, "acquire", "x", "--lease", "1m").want(t, 0)
	as := "redis://u:p@" + server.Addr()
	run(t, server, "inspect", "x", "--json", "--url", as).want(t, 0, `"forced":null`, "is not known")
	run(t, server, "release", "x", "--force", "--yes", "--url", as).want(t, 0, "x: taken from", "is not noted in Redis: ")
	run(t, server, "held", "x").want(t, 1)
}

func TestExtendKeepsWhoHolds(t *testing.T) {
	server := server(t)
	a := kept(t, run(t, server, "acquire", "deploy", "--lease", "10m", "--as", "job 7"))
	b := kept(t, run(t, server, "extend", "deploy", "--lease", "10m", "--owner", a["OWNER"]))
	run(t, server, "inspect", "deploy").want(t, 0, "held by  job 7 (")
	c := kept(t, run(t, server, "extend", "deploy", "--lease", "10m", "--owner", b["OWNER"], "--as", "job 8"))
	run(t, server, "inspect", "deploy").want(t, 0, "held by  job 8 (")
	run(t, server, "release", "deploy", "--owner", c["OWNER"]).want(t, 0)
}

// A shell offers what stands in Redis, and the values of flags, where it would offer files.
func TestCompletion(t *testing.T) {
	server := redistest.Server(t)
	c := client(t, server, "pod-1")
	for _, name := range []string{"orders:42", "orders:43", "users:1", "two words"} {
		clienttest.Grab(t, c.Mutex(name))
	}
	t.Setenv(envURL, url(server))
	complete := func(args ...string) string {
		t.Helper()
		return run(t, server, append([]string{"__complete"}, args...)...).out
	}
	for want, args := range map[string][]string{
		"orders:42\norders:43\n:4\n":     {"inspect", "o"},
		"orders:42\norders:43\n:4\n\n":   {"watch", "orders:4"},
		"users:1\n:4\n":                  {"run", "u"},
		":0\n":                           {"run", "users:1", ""},
		"end\nleave\n:4\n":               {"run", "--on-lost", ""},
		"mutex\n":                        {"check", "--kinds", ""},
		"age\nleft\nname\nwaiters\n:4\n": {"ls", "--sort", ""},
	} {
		if got := complete(args...) + "\n"; !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		run(t, server, "completion", shell).want(t, 0, "for holdfast", "__complete")
	}
	server.Freeze()
	redistest.Equal(t, complete("inspect", "o"), ":4\n", "of a Redis that stands still: %q")
	server.Thaw()
}

// A list that takes long prints what it has found so far: this catches one that is printed when all is found, as Redis
// stands still before that.
func TestLsPrintsAsItFinds(t *testing.T) {
	server := server(t)
	pipe := server.Client(t).Pipeline()
	for n := range 30_000 {
		pipe.HSet(t.Context(), fmt.Sprintf("orders:%d", n), "ac9cf787-2d1c-8486-8727-ea2f2f26e3ba:1", 1)
	}
	redistest.Must(t, redistest.Err(pipe.Exec(t.Context())))
	l := start(t, server, "ls", "--timeout", "1s")
	l.Expect("NAME")
	server.Freeze()
	expect(t, l, "exit 69")
	server.Thaw()
}
