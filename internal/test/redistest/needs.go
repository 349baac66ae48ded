// Needs decides whether the tests on real servers run, on which server binary, and what happens if
// there is none.

package redistest

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

const (
	envServer  = "HOLDFAST_REDIS_SERVER"
	envServers = "HOLDFAST_SERVERS"
	envLong    = "HOLDFAST_LONG"
)

// Needs returns the path of the server binary. [Server], [Sentinel] and [Cluster] call it.
// Unless HOLDFAST_SERVERS=1, it skips t, as [RealTime] does. With HOLDFAST_SERVERS=1, it fails
// t if the binary is missing. In the torture, a program that is not a test, servers always run.
func Needs(t testing.TB) string {
	t.Helper()
	RealTime(t)
	path, err := serverBinary()
	if err != nil {
		t.Fatalf("redistest: %v; apt-get install redis-server, or set %s", err, envServer)
	}
	return path
}

// RealTime skips t unless HOLDFAST_SERVERS=1, and counts the skip for the notice of [Main]. It
// is for tests that need real time, as every test on a real server does. Such a test is slow on
// a machine that is busy with other things, so it has a step of its own.
func RealTime(t testing.TB) {
	t.Helper()
	if serversAskedFor() || !testing.Testing() {
		return
	}
	leftOut.add(t.Name())
	t.Skipf("needs real servers or real time: %s=1 runs it", envServers)
}

// LongRun skips t unless HOLDFAST_SERVERS=1 and HOLDFAST_LONG is set. It is for tests whose verdict
// depends on how fast this machine is, because the gate judges outcomes alone; and for those that take
// long and that a change of this repository hardly ever breaks.
func LongRun(t testing.TB) {
	t.Helper()
	RealTime(t)
	if testing.Testing() && os.Getenv(envLong) == "" {
		t.Skipf("belongs to the long run: %s=1 %s=1 runs it", envServers, envLong)
	}
}

// Missing reports that a tool is missing that a test on real servers needs. If HOLDFAST_SERVERS=1
// asks for such tests, Missing fails t; otherwise it skips t, as [RealTime] does.
func Missing(t testing.TB, what string) {
	t.Helper()
	RealTime(t)
	t.Fatalf("redistest: %s; %s=1 requires it", what, envServers)
}

func serversAskedFor() bool { return os.Getenv(envServers) == "1" }

func serverBinary() (string, error) {
	return exec.LookPath(cmp.Or(os.Getenv(envServer), "redis-server")) // its error names the file
}

// leftOut is a package variable because a test adds the skip and TestMain reports it, and
// testing.M carries nothing from one to the other.
var leftOut skips

// skips records which tests were skipped.
type skips struct {
	mu    sync.Mutex
	tests []string
}

func (s *skips) add(test string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.tests, test) {
		s.tests = append(s.tests, test)
	}
}

func (s *skips) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tests)
}
