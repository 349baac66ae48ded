package redistest

import (
	"os"
	"strings"
	"testing"
	"time"
)

// echo is a child that repeats each line it is sent.
func echo(c *ChildContext) {
	c.Say("hello from %s", os.Getenv("ECHO_NAME"))
	for line, ok := c.Next(); ok; line, ok = c.Next() {
		c.Say("echo %s", line)
	}
	<-c.Done()
	c.Say("bye")
}

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

func TestChildTalks(t *testing.T) {
	c := Start(t, "echo", map[string]string{"ECHO_NAME": "me"})
	if got := c.Line(); got != "hello from me" {
		t.Errorf("said %q", got)
	}
	c.Send("%d", 1)
	c.Send("two")
	if got := c.Expect("echo 1") + c.Expect("echo"); got != "two" {
		t.Errorf("echoed %q", got)
	}
	c.CloseInput()
	c.Expect("bye")
	if err := c.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestChildFreezesAndDies(t *testing.T) {
	c := Start(t, "echo", nil)
	c.Expect("hello")
	c.Freeze()
	c.Send("late")
	if line, ok := c.TryLine(100 * time.Millisecond); ok {
		t.Errorf("a frozen child said %q", line)
	}
	c.Thaw()
	c.Expect("echo late")
	c.Freeze()
	c.Kill()
	if line, ok := c.TryLine(patience); ok {
		t.Errorf("a killed child said %q", line)
	}
}

func TestChildFailureIsSeen(t *testing.T) {
	if err := Start(t, "exit-with-panic", nil).Wait(); err == nil {
		t.Error("a panic ended with status 0")
	}
	if err := Start(t, "no-such-child", nil).Wait(); err == nil || !strings.Contains(err.Error(), "2") {
		t.Errorf("an unknown child: %v", err)
	}
}
