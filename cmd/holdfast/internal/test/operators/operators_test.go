// Package operators tests the commands that show what stands in Redis, and change it by hand, on real servers.
package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(6) // most tests wait
	redistest.Main(tests{m}, redistest.Child("holdfast", runCommand), redistest.Child("pod", runPod))
}

// tests are the tests of this package, and what they leave.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return m.M.Run()
}

// built is the holdfast command, once a test has asked for it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary builds the holdfast command, as a user has it, and returns its path.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "holdfast"); built.err == nil {
			out, err := exec.Command("go", "build", "-o", built.dir, "../../..").CombinedOutput()
			if err != nil {
				built.err = fmt.Errorf("%w: %s", err, out)
			}
		}
	})
	redistest.Must(t, built.err)
	return filepath.Join(built.dir, "holdfast")
}

// soon bounds every wait: it runs out only on a defect.
const soon = time.Minute

// The environment of children.
const (
	envArgs = "OPERATORS_ARGS" // JSON
	envURL  = "HOLDFAST_URL"
	envWho  = "OPERATORS_WHO"
)

// runCommand is the holdfast command as a process, whose every line goes to the parent.
func runCommand(*redistest.ChildContext) {
	var args []string
	if err := json.Unmarshal([]byte(os.Getenv(envArgs)), &args); err != nil {
		panic(err)
	}
	code := cli.Main(cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stdout}, args)
	fmt.Println("exit", code)
}

// start starts the holdfast command as a process.
func start(t *testing.T, server *redistest.Proc, args ...string) *redistest.ChildProc {
	t.Helper()
	text, err := json.Marshal(args)
	redistest.Must(t, err)
	return redistest.Start(t, "holdfast", map[string]string{envArgs: string(text), envURL: url(server)})
}

// server starts a Redis. The test runs beside others.
func server(t *testing.T, args ...string) *redistest.Proc {
	t.Helper()
	redistest.Parallel(t)
	return redistest.Server(t, args...)
}

func url(server *redistest.Proc) string { return "redis://" + server.Addr() }

// done is what has come of a command.
type done struct {
	code     int
	out, err string
}

// run runs the holdfast command in this process, with nothing to read.
func run(t *testing.T, server *redistest.Proc, args ...string) done {
	t.Helper()
	null, err := os.Open(os.DevNull)
	redistest.Must(t, err)
	defer null.Close()
	return runWith(t, null, server, args...)
}

// runWith runs it with that standard input.
func runWith(t *testing.T, in *os.File, server *redistest.Proc, args ...string) done {
	t.Helper()
	return runBare(t, in, append([]string{"--url", url(server)}, args...)...)
}

// runBare runs it with these arguments alone.
func runBare(t *testing.T, in *os.File, args ...string) done {
	t.Helper()
	out, outEnd := pipe(t)
	errs, errEnd := pipe(t)
	outText, errText := make(chan string, 1), make(chan string, 1)
	go func() { text, _ := io.ReadAll(out); outText <- string(text) }()
	go func() { text, _ := io.ReadAll(errs); errText <- string(text) }()
	code := cli.Main(cli.Streams{In: in, Out: outEnd, Err: errEnd}, args)
	outEnd.Close()
	errEnd.Close()
	return done{code, <-outText, <-errText}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	redistest.Must(t, err)
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// want fails the test if the code differs, or if the output has not all the parts, in their order.
func (d done) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	rest := d.out + d.err
	if d.code != code {
		t.Fatalf("exit code %d, want %d: %s", d.code, code, rest)
	}
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("no %q, in that order, in:\n%s%s", part, d.out, d.err)
		}
		rest = after
	}
}

// client returns a Client that says who it is.
func client(t *testing.T, server *redistest.Proc, who string) *holdfast.Client {
	t.Helper()
	c := holdfast.New(server.Client(t), holdfast.WithIdentity(who))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// lock locks, or fails the test. The lease goes with the test.
func lock(t *testing.T, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	ctx := redistest.Within(t, soon)
	held, err := l.Lock(ctx)
	redistest.Must(t, err)
	return held
}

// known waits until others see who holds a name.
func known(t *testing.T, server *redistest.Proc, name, who string) {
	t.Helper()
	looks := holdfast.New(server.Client(t))
	defer looks.Close()
	redistest.Eventually(t, soon, who+" is known to hold "+name, func() error {
		i, err := looks.Inspect(t.Context(), name)
		if err == nil && (len(i.Holders) == 0 || i.Holders[0].Who != who) {
			err = fmt.Errorf("%v", i)
		}
		return err
	})
}

// waiting waits until n wait for a name.
func waiting(t *testing.T, server *redistest.Proc, name string, n int) {
	t.Helper()
	looks := holdfast.New(server.Client(t))
	defer looks.Close()
	redistest.Eventually(t, soon, fmt.Sprintf("%d wait for %s", n, name), func() error {
		i, err := looks.Inspect(t.Context(), name)
		if err == nil && i.Waiters != n {
			err = fmt.Errorf("%v", i)
		}
		return err
	})
}

// holds reports whether somebody holds a name.
func holds(t *testing.T, c *holdfast.Client, name string) bool {
	t.Helper()
	locked, err := c.Mutex(name).Locked(t.Context())
	redistest.Must(t, err)
	return locked
}

// unmarshal returns JSON as a map.
func unmarshal(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

// runPod is a process that says who it is, locks orders:42, and keeps it.
func runPod(c *redistest.ChildContext) {
	rdb, err := dial(os.Getenv(envURL))
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	pod := holdfast.New(rdb, holdfast.WithIdentity(os.Getenv(envWho)))
	defer pod.Close()
	l, err := pod.FairMutex("orders:42").Lock(c)
	if err != nil {
		return
	}
	l.Note("invoice 7")
	c.Say("held")
	<-c.Done()
	if err := l.Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) {
		c.Say("%v", err)
	}
}
