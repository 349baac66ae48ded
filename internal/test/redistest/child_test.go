package redistest

import (
	"os"
	"strings"
	"testing"
)

// withServer is a child that owns a server and never ends by itself.
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
