// acquire, extend and release: a lock that outlives the command, and a lock that is taken from its holder.

package operators

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/leader"
)

// kept returns the lines that acquire and extend print.
func kept(t *testing.T, d done) map[string]string {
	t.Helper()
	d.want(t, 0, "HOLDFAST_LOCK=", "HOLDFAST_OWNER=", "HOLDFAST_TOKEN=", "HOLDFAST_LEASE_UNTIL=")
	values := make(map[string]string)
	for line := range strings.Lines(d.out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[strings.TrimPrefix(key, "HOLDFAST_")] = value
	}
	return values
}

// lasts fails the test unless a name is held for about that long: a slow machine has some minutes.
func lasts(t *testing.T, server *redistest.Proc, name string, want time.Duration) {
	t.Helper()
	m := unmarshal(t, run(t, server, "inspect", name, "--json").out)
	left := time.Duration(m["remaining_seconds"].(float64) * float64(time.Second))
	if left > want || left < want-5*time.Minute {
		t.Errorf("%s lasts %v, want %v", name, left, want)
	}
}

func TestALockOfAcquireOutlivesTheCommand(t *testing.T) {
	server := server(t)
	a := kept(t, run(t, server, "acquire", "deploy", "--lease", "10m", "--as", "job 7"))
	run(t, server, "inspect", "deploy").want(t, 0, "deploy: mutex", "held by  job 7 (", " left")
	lasts(t, server, "deploy", 10*time.Minute)
	until, err := time.Parse(time.RFC3339, a["LEASE_UNTIL"])
	if left := time.Until(until); err != nil || left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("until %v, %v", a["LEASE_UNTIL"], err)
	}
	run(t, server, "acquire", "deploy", "--lease", "10m", "--try").want(t, 75, "held by another")
	run(t, server, "acquire", "deploy", "--lease", "10m", "-w", "1s").want(t, 75, "held by another")
	run(t, server, "release", "deploy", "--owner", a["OWNER"]).want(t, 0)
	run(t, server, "held", "deploy").want(t, 1)
	run(t, server, "release", "deploy", "--owner", a["OWNER"]).want(t, 76)
	run(t, server, "release", "deploy", "--owner", "nobody").want(t, 64)
	run(t, server, "release", "deploy").want(t, 64, "--owner")
	m := unmarshal(t, run(t, server, "acquire", "deploy", "--lease", "10m", "--json").out)
	if m["lock"] != "deploy" || m["owner"] == "" || m["token"].(float64) == 0 || m["lease_until"] == nil {
		t.Errorf("%v", m)
	}
}

func TestExtendMovesTheLockToANewOwner(t *testing.T) {
	server := redistest.Server(t)
	a := kept(t, run(t, server, "acquire", "deploy", "--lease", "1m"))
	b := kept(t, run(t, server, "extend", "deploy", "--lease", "1h", "--owner", a["OWNER"]))
	if a["OWNER"] == b["OWNER"] || a["TOKEN"] != b["TOKEN"] {
		t.Errorf("%v, %v", a, b)
	}
	lasts(t, server, "deploy", time.Hour)
	run(t, server, "extend", "deploy", "--lease", "1h", "--owner", a["OWNER"]).want(t, 76)
	lasts(t, server, "deploy", time.Hour)
	c := kept(t, run(t, server, "extend", "deploy", "--lease", "1s", "--owner", b["OWNER"])) // it never shortens
	lasts(t, server, "deploy", time.Hour)
	t.Setenv("HOLDFAST_OWNER", c["OWNER"])
	run(t, server, "release", "deploy").want(t, 0)
}

// If the owner cannot be printed, nobody could release the lock.
func TestAcquireReleasesWhatItCannotTellOf(t *testing.T) {
	server := server(t)
	r, w, err := os.Pipe()
	redistest.Must(t, err)
	r.Close()
	defer w.Close()
	code := cli.Main(cli.Streams{In: os.Stdin, Out: w, Err: w}, []string{"--url", url(server), "acquire", "x", "--lease", "10m"})
	redistest.Equal(t, code, 1, "exit code %d")
	run(t, server, "held", "x").want(t, 1)
}

// A signal ends a wait, and what was waited for goes to the next.
func TestASignalEndsTheWaitOfAcquire(t *testing.T) {
	server := server(t)
	l := clienttest.Grab(t, client(t, server, "").Mutex("x"))
	w := start(t, server, "acquire", "x", "--lease", "10m")
	waiting(t, server, "x", 1)
	redistest.Must(t, syscall.Kill(w.PID(), syscall.SIGINT))
	w.Expect("exit 130")
	waiting(t, server, "x", 0)
	redistest.Must(t, l.Release(t.Context()))
	run(t, server, "held", "x").want(t, 1)
}

func TestForceNeedsAYes(t *testing.T) {
	server := server(t)
	l := clienttest.Grab(t, client(t, server, "pod-1").Mutex("x", holdfast.Renewed(10*time.Second))) // a loss is told by a renewal
	known(t, server, "x", "pod-1")
	run(t, server, "release", "x", "--force").want(t, 64, "--yes")
	keyboard, in, err := pty.Open()
	redistest.Must(t, err)
	defer keyboard.Close()
	defer in.Close()
	for _, no := range []string{"n\n", "\n"} {
		redistest.Must(t, redistest.Err(keyboard.WriteString(no)))
		runWith(t, in, server, "release", "x", "--force").want(t, 1, "Take x from pod-1 (", "for ", " left? ")
		if l.Err() != nil {
			t.Errorf("%q: %v", no, l.Err())
		}
	}
	redistest.Must(t, redistest.Err(keyboard.WriteString("yes\n")))
	runWith(t, in, server, "release", "x", "--force").want(t, 0, "x: taken from pod-1 (", "Take x from pod-1 (", "for ", " left? ")
	within(t, l.Done(), "the loss")
	redistest.Is(t, "Err()", l.Err(), holdfast.ErrLost)
	run(t, server, "release", "x", "--force", "--yes").want(t, 0, "nobody holds x")
}

func TestForceTakesEachKind(t *testing.T) {
	server := server(t)
	c := client(t, server, "pod-1")
	for kind, locker := range map[string]holdfast.Locker{
		"mutex": c.Mutex("x"), "fair": c.FairMutex("x"), "writer": c.RWMutex("x"), "reader": c.RWMutex("x").RLocker(),
	} {
		t.Run(kind, func(t *testing.T) {
			old := clienttest.Grab(t, locker)
			known(t, server, "x", "pod-1")
			run(t, server, "release", "x", "--force", "--yes").want(t, 0, "x: taken from pod-1 (")
			run(t, server, "inspect", "x").want(t, 0, "x: free")
			redistest.Is(t, "Release", old.Release(t.Context()), holdfast.ErrLost)
		})
	}
}

func TestForceTakesOnePermit(t *testing.T) {
	server := server(t)
	c := client(t, server, "")
	s := c.PermitSemaphore("p")
	redistest.Must(t, s.SetPermits(t.Context(), 2))
	mine, other := clienttest.Grab(t, s.Locker(1)), clienttest.Grab(t, s.Locker(1))
	run(t, server, "release", "p", "--force", "--yes").want(t, 64, "--permit")
	run(t, server, "release", "p", "--permit", "x").want(t, 64, "--force")
	id := s.IDs(mine)[0]
	run(t, server, "release", "p", "--force", "--yes", "--permit", "zz").want(t, 0, "nobody holds")
	run(t, server, "release", "p", "--force", "--yes", "--permit", id[:8]+"…").want(t, 0, "p: taken from permit "+id[:8])
	redistest.Is(t, "Release", mine.Release(t.Context()), holdfast.ErrLost)
	redistest.Check(t, other.Release(t.Context()))
	run(t, server, "release", "x", "--force", "--yes").want(t, 0, "nobody holds x")
}

// campaign runs a candidate until the test ends, and returns a channel that gets each of its terms.
func campaign(t *testing.T, c *holdfast.Client, name string, options ...leader.Option) <-chan context.Context {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	terms, done := make(chan context.Context, 100), make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Leader(name, options...).Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			terms <- ctx
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return terms
}

func TestALeaderIsAskedToResignOrLosesTheLead(t *testing.T) {
	server := server(t)
	first := campaign(t, client(t, server, "pod-1"), "lead", leader.Lease(10*time.Second))
	term := within(t, first, "a term")
	second := campaign(t, client(t, server, "pod-2"), "lead", leader.Lease(10*time.Second))
	waiting(t, server, "lead", 1)
	run(t, server, "release", "lead", "--ask").want(t, 64, "--yes")
	run(t, server, "release", "lead", "--ask", "--yes").want(t, 0, "lead: asked to resign: pod-1 (")
	<-term.Done()
	redistest.Is(t, "the cause", context.Cause(term), holdfast.ErrResigned)
	term = within(t, second, "a term")
	redistest.Eventually(t, soon, "pod-2 leads, and pod-1 waits", func() error {
		return has(run(t, server, "inspect", "lead").out, "held by  pod-2 (", "1.  pod-1 (")
	})
	run(t, server, "release", "lead", "--force", "--yes").want(t, 0, "lead: taken from pod-2 (")
	within(t, first, "a term")
	<-term.Done()
	redistest.Is(t, "the cause", context.Cause(term), holdfast.ErrLost)
	run(t, server, "release", "x", "--ask", "--yes").want(t, 1, "nobody leads x")
}

func TestAHolderIsAskedForItsLock(t *testing.T) {
	server := server(t)
	l, err := client(t, server, "pod-1").Mutex("build").Lock(t.Context())
	redistest.Must(t, err)
	asked := l.Asked()
	run(t, server, "release", "build", "--ask", "--yes").want(t, 0, "build: asked to release: pod-1 (")
	<-asked
	run(t, server, "ls").want(t, 0, "asked to release it")
	run(t, server, "inspect", "build").want(t, 0, "its holder is asked to release it")
	redistest.Check(t, l.Release(t.Context()))
}

func TestForceLeavesAloneWhatNobodyHolds(t *testing.T) {
	server := server(t)
	server.Admin().Set(t.Context(), "number", 3, 0)
	server.Admin().HSet(t.Context(), "hash", "a", 1)
	run(t, server, "release", "number", "--force", "--yes").want(t, 64, "number is a number")
	run(t, server, "release", "hash", "--force", "--yes").want(t, 64, "hash is nothing of Holdfast's")
	redistest.Equal(t, server.Admin().Exists(t.Context(), "number", "hash").Val(), 2, "%d keys are left")
}
