package redistest

import (
	"errors"
	"os/exec"
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
