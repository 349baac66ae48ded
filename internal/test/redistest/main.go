// Main is the TestMain of every package. It runs the children first, then the tests, the goroutine
// leak check, and the notice of skipped tests.

package redistest

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

// Main runs a package's tests and exits: func TestMain(m *testing.M) { redistest.Main(m) }. It
// fails the package if a goroutine is left when all tests have passed, or if a [Watched] Client
// has logged a whole id. It prints one line if tests on real servers were skipped. In a process
// that [Start] started, it runs that child instead. A package that needs to do something after
// its tests passes a type of its own whose Run calls m's.
//
// go test does not show the output of a passing package when it is given a list of packages. So
// on Linux the line goes to the standard error of the go command, if that is a terminal, a pipe
// or a file opened for appending. Otherwise it goes to the test's own standard error, which
// shows with -v. A cached result prints nothing.
func Main(m interface{ Run() int }, children ...ChildFunc) {
	if name := os.Getenv(envChild); name != "" {
		os.Exit(runChild(name, children))
	}
	logging.Disable()       // go-redis logs every connection that a test refuses
	debug.SetGCPercent(400) // miniredis makes a state of Lua for each script: a quarter of the processor went into collecting them
	code := m.Run()
	for _, look := range []func() error{findLeaks, secretTold} {
		if code != 0 {
			break
		}
		if err := look(); err != nil {
			fmt.Fprintf(os.Stderr, "redistest: after the last test: %v\n", err)
			code = 1
		}
	}
	if n := leftOut.count(); n > 0 {
		Tell(notice(n, packageName()))
	}
	os.Exit(code)
}

// findLeaks ignores the testing package's own goroutines, and the goroutines by which a client of
// redis.NewFailoverClusterClient listens to the Sentinels: go-redis does not end them when that
// client is closed. A test must close everything else that it opens.
func findLeaks() error {
	return poll(patience, func() error {
		return goleak.Find(
			goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*sentinelFailover).listen"),
			goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*channel).initMsgChan.func1"),
			goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*channel).initHealthCheck.func1"))
	})
}

func notice(n int, pkg string) string {
	tests := "tests"
	if n == 1 {
		tests = "test"
	}
	return fmt.Sprintf("holdfast: %d real-server %s left out in %s: %s=1 runs them\n", n, tests, pkg, envServers)
}

// packageName returns the tested package's path within its module.
func packageName() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "this package"
	}
	path := strings.TrimSuffix(info.Path, ".test")
	if path == info.Main.Path {
		return "the root package"
	}
	return strings.TrimPrefix(path, info.Main.Path+"/")
}

// Tell writes lines to where the person who runs the tests sees them: see [Main].
func Tell(lines string) {
	if w := goCommandStderr(); w != nil {
		defer w.Close()
		if _, err := w.WriteString(lines); err == nil {
			return
		}
	}
	fmt.Fprint(os.Stderr, lines)
}
