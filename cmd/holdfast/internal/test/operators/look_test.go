// ls, inspect and watch show who holds what.

package operators

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Three want one lock. One command names the one that has it, what it was at, and those that wait, in their order.
func TestAnOperatorFindsThePodOfAStuckLockByOneCommand(t *testing.T) {
	server := server(t)
	stuck := clienttest.Grab(t, client(t, server, "billing-7f9c/pid 12").FairMutex("orders:42"))
	stuck.Note("invoice 7")
	for n, who := range []string{"billing-a1b2/pid 12", "billing-c3d4/pid 12"} {
		waits := client(t, server, who).FairMutex("orders:42")
		go func() { _, _ = waits.Lock(t.Context()) }()
		waiting(t, server, "orders:42", n+1)
	}
	redistest.Eventually(t, soon, "the note, and those that wait", func() error {
		return has(run(t, server, "inspect", "orders:42").out,
			"orders:42: mutex", "held by  billing-7f9c/pid 12 (", `"invoice 7"`, "since 20", "left\n",
			"waiting  2", "1.  billing-a1b2/pid 12 (", "came ", "2.  billing-c3d4/pid 12 (")
	})
	run(t, server, "ls", "orders:*").want(t, 0, "NAME", "orders:42  mutex  billing-7f9c/pid 12", "ago", "2\n")
	run(t, server, "ls", "--wide").want(t, 0,
		"billing-7f9c/pid 12", `"invoice 7"`, "1.", "billing-a1b2/pid 12", "2.", "billing-c3d4/pid 12")
}

func TestLsShowsEveryKind(t *testing.T) {
	server := server(t)
	run(t, server, "ls").want(t, 0)
	c := client(t, server, "pod-1")
	clienttest.Grab(t, c.Mutex("a-mutex"))
	clienttest.Grab(t, c.RWMutex("b-read").RLocker())
	clienttest.Grab(t, c.RWMutex("b-write"))
	redistest.Must(t, c.PermitSemaphore("c-permits").SetPermits(t.Context(), 3))
	clienttest.Grab(t, c.PermitSemaphore("c-permits").Locker(2))
	run(t, server, "sem", "set", "d-sem", "5", "--counting").want(t, 0)
	run(t, server, "latch", "set", "e-latch", "3").want(t, 0)
	server.Admin().Set(t.Context(), "f-number", 7, 0)
	known(t, server, "a-mutex", "pod-1")
	for n, line := range strings.Split(strings.TrimSpace(run(t, server, "ls").out), "\n") {
		want := [][]string{
			{"NAME", "KIND", "HELD BY", "SINCE", "LEFT", "WAITERS"},
			{"a-mutex ", " mutex ", " pod-1 ", "s ago ", "s ", " 0"},
			{"b-read ", " rwlock ", " pod-1 (reads) ", " - ", "s ", " 0"},
			{"b-write ", " rwlock ", " pod-1 (writes) ", "s ago ", "s ", " 0"},
			{"c-permits ", " permits ", " 1 of 3 free ", " - ", "s ", " -"},
			{"d-sem ", " semaphore ", " 5 of 5 free ", " - ", " - ", " -"},
			{"e-latch ", " latch ", " 3 to come ", " - ", " - ", " -"},
			{"f-number ", " count ", " 7 ", " - ", " - ", " -"},
		}
		if n >= len(want) {
			t.Fatalf("one line more: %s", line)
		}
		done{out: line}.want(t, 0, want[n]...)
	}
	if got := run(t, server, "ls", "e-*").out; strings.Count(got, "\n") != 2 {
		t.Errorf("%s", got)
	}
}

// Whoever reads the output of ls cannot release what it shows, unless --owners is given.
func TestJSONHasNoWholeOwners(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod-1")
	l := clienttest.Grab(t, c.Mutex("x"))
	known(t, server, "x", "pod-1")
	redistest.Must(t, c.PermitSemaphore("p").SetPermits(t.Context(), 1))
	permit := c.PermitSemaphore("p").IDs(clienttest.Grab(t, c.PermitSemaphore("p").Locker(1)))[0]
	for _, args := range [][]string{
		{"ls", "--json"}, {"inspect", "x", "p", "--json"}, {"ls"}, {"ls", "--wide"}, {"inspect", "x", "p"},
	} {
		d := run(t, server, args...)
		d.want(t, 0, "pod-1")
		if strings.Contains(d.out, l.Owner().String()) || strings.Contains(d.out, permit) {
			t.Errorf("%v: %s", args, d.out)
		}
		if args[0] == "inspect" {
			d.want(t, 0, permit[:8])
		}
	}
	for _, args := range [][]string{{"ls", "--json", "--owners"}, {"inspect", "p", "x", "--json", "--owners"}} {
		run(t, server, args...).want(t, 0, permit, l.Owner().String())
		run(t, server, args[0], "x", "--owners").want(t, 64)
	}
	run(t, server, "inspect", "x", "--json").want(t, 0, `"name":"x"`, `"owner":"`+l.Owner().Short(), `"who":"pod-1"`, `"held_since":"20`)
}

// Nothing that others have put into Redis moves the terminal's cursor.
func TestNamesArePrintedSafely(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod\x1b]0;title\x07")
	name := "a\x1b[2Jb\nc\xff\u202e"
	l := clienttest.Grab(t, c.Mutex(name))
	l.Note("\x1b[31mred")
	clienttest.Grab(t, c.Mutex("two words"))
	known(t, server, name, "pod\x1b]0;title\x07")
	for _, args := range [][]string{{"ls"}, {"ls", "--wide"}, {"inspect", name}, {"inspect", "free\x1bname"}, {"ls", "--json"},
		{"latch", "show", "\x1bx"}, {"release", name, "--force", "--yes"}} {
		d := run(t, server, args...)
		if text := d.out + d.err; d.code != 0 || strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Contains(text, "\xff") {
			t.Errorf("%q: %d, %q %q", args, d.code, d.out, d.err)
		}
	}
	run(t, server, "ls").want(t, 0, `"two words"`)
}

func TestWatchPrintsWhatHappens(t *testing.T) {
	server := server(t)
	a, b := client(t, server, "pod-a"), client(t, server, "pod-b")
	for _, pattern := range []string{"orders:*", "orders:42"} {
		t.Run(pattern, func(t *testing.T) {
			w := start(t, server, "watch", pattern, "--every", "20ms")
			w.Expect("holdfast: watching: ")
			first := clienttest.Grab(t, a.FairMutex("orders:42"))
			expect(t, w, "orders:42  mutex  granted to ")
			second := make(chan *holdfast.Lease)
			go func() { l, _ := b.FairMutex("orders:42").Lock(t.Context()); second <- l }()
			expect(t, w, "orders:42  mutex  waited for by ")
			redistest.Check(t, first.Release(t.Context()))
			expect(t, w, "orders:42  mutex  passed from ", " to ")
			redistest.Check(t, (<-second).Release(t.Context()))
			expect(t, w, "orders:42  mutex  released by ")
			redistest.Must(t, syscall.Kill(w.PID(), syscall.SIGINT))
			w.Expect("exit 130")
		})
	}
}

// expect reads lines until one has all the parts, in their order.
func expect(t *testing.T, w *redistest.ChildProc, parts ...string) {
	t.Helper()
	for has(w.Line(), parts...) != nil {
	}
}

func TestWatchPrintsCountsAndExpiriesAsJSON(t *testing.T) {
	server := server(t)
	w := start(t, server, "watch", "--every", "20ms", "--json")
	w.Expect("holdfast: watching: 0 names are there now")
	event := func(what string) map[string]any {
		t.Helper()
		for {
			if m := unmarshal(t, w.Line()); m["event"] == what {
				return m
			}
		}
	}
	run(t, server, "latch", "set", "l", "3").want(t, 0)
	if m := event("counted"); m["name"] != "l" || m["kind"] != "latch" || m["value"] != 3.0 || m["was"] != 0.0 {
		t.Errorf("%v", m)
	}
	run(t, server, "latch", "down", "l").want(t, 0, "2\n")
	if m := event("counted"); m["value"] != 2.0 || m["was"] != 3.0 {
		t.Errorf("%v", m)
	}
	run(t, server, "sem", "set", "s", "5", "--counting").want(t, 0)
	if m := event("counted"); m["kind"] != "semaphore" || m["value"] != 5.0 || m["all"] != 5.0 {
		t.Errorf("%v", m)
	}
	run(t, server, "acquire", "x", "--lease", "5s").want(t, 0) // nobody renews it
	granted := event("granted")
	expired := event("expired")
	who := granted["holder"].(map[string]any)["owner"]
	if granted["name"] != "x" || expired["name"] != "x" || expired["from"].(map[string]any)["owner"] != who {
		t.Errorf("%v, %v", granted, expired)
	}
}
