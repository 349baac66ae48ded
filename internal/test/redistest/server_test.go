package redistest

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestServerReportsABadOption(t *testing.T) {
	p := &Proc{t: t, bin: Needs(t), dir: t.TempDir(), port: freePort(t, false), args: []string{"--no-such-option", "1"}}
	err := p.launch()
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("err = %v, want the log's line about the option", err)
	}
}

func TestServerRefusesAStrangersPort(t *testing.T) {
	s := Server(t)
	p := &Proc{t: t, bin: s.bin, dir: t.TempDir(), port: s.port, args: nil}
	if err := p.launch(); err == nil {
		t.Fatal("a second server started on the port of the first")
	}
}

func TestServerKillAndRestart(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		keep bool
		dead bool
		want string
	}{
		{name: "empty", want: ""},
		{name: "kept by saving first", keep: true, want: "v"},
		{name: "kept by the append-only file after a kill", args: []string{"--appendonly", "yes", "--appendfsync", "always"}, keep: true, dead: true, want: "v"},
		{name: "lost by a kill without persistence", keep: true, dead: true, want: ""},
		{name: "append-only file removed", args: []string{"--appendonly", "yes"}, want: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Server(t, tc.args...)
			c := s.Client(t, once)
			Must(t, c.Set(testContext(t), "k", "v", 0).Err())
			if tc.dead {
				s.Kill()
				if c.Ping(testContext(t)).Err() == nil {
					t.Fatal("a killed server answers")
				}
			}
			s.Restart(tc.keep)
			got, err := s.Client(t).Get(testContext(t), "k").Result()
			if err != nil && err != redis.Nil || got != tc.want {
				t.Errorf("k = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestServerFreezeAndThaw(t *testing.T) {
	s := Server(t)
	c := s.Client(t, once, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	s.Freeze()
	if s.Running() {
		t.Error("a frozen server is said to run")
	}
	if err := c.Ping(testContext(t)).Err(); err == nil {
		t.Error("a frozen server answers")
	}
	s.Thaw()
	if err := s.Client(t).Ping(testContext(t)).Err(); err != nil {
		t.Errorf("after the thaw: %v", err)
	}
	s.Freeze() // the clean-up can end a frozen server too
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
			return errStillThere
		}
		return nil
	})
}
