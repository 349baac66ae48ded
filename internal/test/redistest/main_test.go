package redistest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestARequiredServerThatIsMissingFails(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestServerFlushScripts$", "github.com/holdfast-go/holdfast/internal/test/redistest")
	cmd.Env = append(os.Environ(), envServer+"=/nonexistent/server", envServers+"=1")
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), "apt-get install redis-server") {
		t.Errorf("go test: %v\n%s", err, out)
	}
}
