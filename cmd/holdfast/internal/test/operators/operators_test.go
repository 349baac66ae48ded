// Package operators tests the commands that show what stands in Redis, and change it by hand, on real servers.
package operators

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(6) // most tests wait
	redistest.Main(m, redistest.Child("holdfast", runCommand))
}

// soon bounds every wait: it runs out only on a defect.
const soon = time.Minute

// The environment of children.
const (
	envArgs = "OPERATORS_ARGS" // JSON
	envURL  = "HOLDFAST_URL"
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
	return startWith(t, map[string]string{envURL: url(server)}, args...)
}

// startWith starts it with these variables.
func startWith(t *testing.T, variables map[string]string, args ...string) *redistest.ChildProc {
	t.Helper()
	text, err := json.Marshal(args)
	redistest.Must(t, err)
	env := map[string]string{envArgs: string(text)}
	maps.Copy(env, variables)
	return redistest.Start(t, "holdfast", env)
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
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	redistest.Must(t, err)
	defer out.Close()
	errs, err := os.Create(filepath.Join(dir, "err"))
	redistest.Must(t, err)
	defer errs.Close()
	code := cli.Main(cli.Streams{In: in, Out: out, Err: errs}, append([]string{"--url", url(server)}, args...))
	outText, err := os.ReadFile(out.Name())
	redistest.Must(t, err)
	errText, err := os.ReadFile(errs.Name())
	redistest.Must(t, err)
	return done{code, string(outText), string(errText)}
}

// want fails the test if the code differs, or if the output has not all the parts, in their order.
func (d done) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	text := d.out + d.err
	if d.code != code {
		t.Fatalf("exit code %d, want %d: %s", d.code, code, text)
	}
	redistest.Must(t, has(text, parts...))
}

// has returns an error if a text has not all the parts, in their order.
func has(text string, parts ...string) error {
	rest, found := text, true
	for _, part := range parts {
		if _, rest, found = strings.Cut(rest, part); !found {
			return fmt.Errorf("no %q, in that order, in:\n%s", part, text)
		}
	}
	return nil
}

// client returns a Client that says who it is.
func client(t *testing.T, server *redistest.Proc, who string) *holdfast.Client {
	t.Helper()
	return clienttest.OpenClient(t, server.Client(t), holdfast.WithIdentity(who))
}

// within returns the next thing that a channel has, and fails the test if that does not come.
func within[T any](t *testing.T, c <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(soon):
		t.Fatalf("%s does not come", what)
	}
	return got
}

// known waits until others see who holds a name.
func known(t *testing.T, server *redistest.Proc, name, who string) {
	t.Helper()
	seen(t, server, name, "held by "+who, func(i holdfast.Inspection) bool {
		return len(i.Holders) > 0 && i.Holders[0].Who == who
	})
}

// waiting waits until n wait for a name.
func waiting(t *testing.T, server *redistest.Proc, name string, n int) {
	t.Helper()
	seen(t, server, name, fmt.Sprintf("waited for by %d", n), func(i holdfast.Inspection) bool { return i.Waiters == n })
}

// seen waits until others see a name as it is to be.
func seen(t *testing.T, server *redistest.Proc, name, what string, is func(holdfast.Inspection) bool) {
	t.Helper()
	looks := client(t, server, "")
	redistest.Eventually(t, soon, name+" is "+what, func() error {
		i, err := looks.Inspect(t.Context(), name)
		if err == nil && !is(i) {
			err = fmt.Errorf("%v", i)
		}
		return err
	})
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
