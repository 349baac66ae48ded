// Servers and children: which are started, and how they end.

package redistest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestServerRefusesAStrangersPort(t *testing.T) {
	s := Server(t)
	p := &Proc{t: t, bin: s.bin, dir: t.TempDir(), port: s.port, args: nil}
	if err := p.launch(); err == nil {
		t.Fatal("a second server started on the port of the first")
	}
}

func TestServerFlushScripts(t *testing.T) {
	s := Server(t)
	c := s.Client(t)
	sha := c.ScriptLoad(testContext(t), "return 1").Val()
	s.FlushScripts()
	if err := c.EvalSha(testContext(t), sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("err = %v, want NOSCRIPT", err)
	}
}

// The server of a killed child dies with the child: nothing else can end that server.
func TestServersDieWithAKilledTestBinary(t *testing.T) {
	if _, err := exec.LookPath("/proc/self/exe"); err != nil {
		t.Skip("needs Linux")
	}
	Needs(t)
	c := Start(t, "with-server", nil)
	addr := c.Expect("serving ")
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	Must(t, rdb.Ping(testContext(t)).Err())
	c.Kill()
	Eventually(t, patience, "the server is gone", func() error {
		if rdb.Ping(testContext(t)).Err() == nil {
			return errors.New("still there")
		}
		return nil
	})
}

// withServer is a child that owns a server and never ends alone.
func withServer(c *ChildContext) {
	p := &Proc{bin: mustBinary(), dir: os.TempDir(), args: []string{"--save", "", "--appendonly", "no"}}
	for p.port = portBase; ; p.port++ {
		if isFree(p.port) && p.launch() == nil {
			break
		}
	}
	c.Say("serving %s", p.Addr())
	select {}
}

func mustBinary() string {
	bin, err := serverBinary()
	if err != nil {
		panic(err)
	}
	return bin
}

func TestChildFailureIsSeen(t *testing.T) {
	if err := Start(t, "exit-with-panic", nil).Wait(); err == nil {
		t.Error("a panic ended with status 0")
	}
	if err := Start(t, "no-such-child", nil).Wait(); err == nil || !strings.Contains(err.Error(), "2") {
		t.Errorf("an unknown child: %v", err)
	}
}

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
