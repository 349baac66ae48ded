package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goTest runs go test on this package in the way that hides the output of a passing package, with
// the given standard error.
func goTest(t *testing.T, run string, stderr *os.File, env ...string) (stdout string, err error) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command")
	}
	goCmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	cmd := exec.Command(goCmd, "test", "-count=1", "-run", run, "github.com/holdfast-go/holdfast/internal/test/redistest")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	return string(out), err
}

func TestNoticeReachesTheGoCommandsStderr(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd/2"); err != nil {
		t.Skip("needs Linux")
	}
	path := filepath.Join(t.TempDir(), "stderr")
	stderr, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	Must(t, err)
	defer stderr.Close()
	stdout, err := goTest(t, "^TestServerFlushScripts$", stderr, envServers+"=")
	if err != nil || !strings.HasPrefix(stdout, "ok") {
		t.Fatalf("go test: %v\n%s", err, stdout)
	}
	got, _ := os.ReadFile(path)
	if want := "holdfast: 1 real-server test left out in internal/test/redistest: HOLDFAST_SERVERS=1"; !strings.Contains(string(got), want) {
		t.Errorf("standard error %q, want %q", got, want)
	}
}

func TestARequiredServerThatIsMissingFails(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	Must(t, err)
	defer null.Close()
	stdout, err := goTest(t, "^TestServerFlushScripts$", null, envServer+"=/nonexistent/server", envServers+"=1")
	if err == nil || !strings.Contains(stdout, "apt-get install redis-server") {
		t.Errorf("go test: %v\n%s", err, stdout)
	}
}

func TestCount(t *testing.T) {
	for _, tc := range []struct {
		long       string
		full, want int
	}{{"", 1000, 100}, {"", 5, 1}, {"1", 1000, 1000}} {
		t.Setenv("HOLDFAST_LONG", tc.long)
		if got := Count(t, tc.full); got != tc.want {
			t.Errorf("HOLDFAST_LONG=%q: Count(%d) = %d, want %d", tc.long, tc.full, got, tc.want)
		}
	}
}
