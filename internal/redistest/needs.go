// Which server binary the tests run, and what happens when there is none.

package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

const (
	envServer  = "HOLDFAST_REDIS_SERVER"
	envRequire = "HOLDFAST_REQUIRE_SERVERS"
)

// Needs returns the path of the server binary. Without one it skips t and
// remembers t's name for the notice of [Main], or fails t if
// HOLDFAST_REQUIRE_SERVERS=1.
func Needs(t testing.TB) string {
	t.Helper()
	path, err := serverBinary()
	if err == nil {
		return path
	}
	LeaveOut(t, fmt.Sprintf("%v; apt-get install redis-server, or set %s", err, envServer))
	return ""
}

// LeaveOut skips t for want of something, and remembers it for the notice of
// [Main]; with HOLDFAST_REQUIRE_SERVERS=1 it fails t instead.
func LeaveOut(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(envRequire) == "1" {
		t.Fatalf("%s; %s=1 requires it", reason, envRequire)
	}
	leftOut.add(t.Name(), reason)
	t.Skip(reason)
}

func serverBinary() (string, error) {
	name := os.Getenv(envServer)
	if name == "" {
		path, err := exec.LookPath("redis-server")
		if err != nil {
			return "", fmt.Errorf("no redis-server found")
		}
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no server at %s=%s", envServer, name)
	}
	return path, nil
}

// leftOut is package-level because a skip happens in a test and is told in
// TestMain, and testing.M carries nothing from one to the other.
var leftOut skips

// skips remembers which tests were left out and why.
type skips struct {
	mu     sync.Mutex
	tests  []string
	reason string
}

func (s *skips) add(test, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.tests, test) {
		s.tests = append(s.tests, test)
	}
	s.reason = reason
}

func (s *skips) report() (n int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tests), s.reason
}
