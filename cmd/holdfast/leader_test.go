// These tests run programs while they lead, and under locks that acquire has taken.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestLeader_HowItEnds(t *testing.T) {
	_, url := server(t)
	start(t, url, "", "leader", "x", "--", "true").want(0)
	start(t, url, "", "leader", "x", "--once", "--", "sh", "-c", "exit 5").want(5)
	start(t, url, "", "leader", "x", "--", "no-such-program").want(127)
	start(t, url, "", "leader", "x").want(64)
	start(t, "redis://localhost:1", "", "leader", "x", "--timeout", "300ms", "--", "true").want(69)
	c := start(t, url, "", "leader", "x", "--", "sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
	c.await("ready")
	c.send(syscall.SIGTERM)
	c.want(7)
}

// A signal between the grant of the lead and the beginning of the program ends the command as it ends others.
func TestLeader_ASignalBeforeTheProgramBegins(t *testing.T) {
	_, url := server(t)
	r, w, err := os.Pipe()
	redistest.Must(t, err)
	defer r.Close()
	// Nobody reads what the command says, and there is no room for it: it waits before it begins the program.
	redistest.Must(t, w.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for err == nil {
		_, err = w.Write(make([]byte, 1))
	}
	// The program does not end of its own accord: Go may hand the signal to the command only after the program has begun.
	// The command then passes the signal on, and the exit code is the same.
	c := exec.Command(binary, "leader", "x", "--", "sleep", "30")
	c.Env, c.Stderr = append(os.Environ(), "HOLDFAST_URL="+url), w
	redistest.Must(t, c.Start())
	w.Close()
	defer func() { _ = c.Process.Kill() }()
	x := client(t, url)
	redistest.Eventually(t, 20*time.Second, "it leads", func() error {
		i, err := x.Inspect(t.Context(), "x")
		if err == nil && len(i.Holders) == 0 {
			err = fmt.Errorf("%v", i)
		}
		return err
	})
	redistest.Must(t, c.Process.Signal(syscall.SIGTERM))
	redistest.Eventually(t, 20*time.Second, "the signal is taken", func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		if err == nil && !strings.Contains(string(text), "ShdPnd:\t0000000000000000") {
			err = errors.New("it is pending")
		}
		return err
	})
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if err := c.Wait(); c.ProcessState.ExitCode() != 143 {
		t.Errorf("it ends with %v", err)
	}
}

// A program that fails runs again in another term, with a greater token.
func TestLeader_RunsAgain(t *testing.T) {
	_, url := server(t)
	c := start(t, url, "", "leader", "x", "--", "sh", "-c", "echo $HOLDFAST_ELECTION $HOLDFAST_TOKEN; exit 3")
	last := ""
	for range 2 {
		if l := c.line(); l <= last || !strings.HasPrefix(l, "x 1") {
			t.Errorf("%q after %q", l, last)
		} else {
			last = l
		}
	}
	c.send(syscall.SIGTERM)
	if code, _ := c.code(); code != 143 && code != 3 { // the signal comes between two terms, or in one
		t.Errorf("exit code %d", code)
	}
}

// Of two that campaign one leads. When it is killed, or gives way, the other does.
func TestLeader_TakesOver(t *testing.T) {
	_, url := serverAlone(t)
	file := filepath.Join(t.TempDir(), "beats")
	campaign := func() *command {
		return start(t, url, "stubborn", "leader", "x", "--lease", "1s", "--grace", "300ms", "--", os.Args[0], file)
	}
	one := campaign()
	one.await("ready")
	two := campaign()
	waiting(t, url, "x", 1)
	one.send(syscall.SIGKILL)
	two.await("ready")
	three := campaign()
	waiting(t, url, "x", 1)
	redistest.Must(t, client(t, url).Leader("x").RequestResign(t.Context()))
	three.await("ready")
	oneAfterTheOther(t, file, 3)
	two.end()
	three.send(syscall.SIGKILL)
}

func TestLeader_Probes(t *testing.T) {
	_, url := server(t)
	one := start(t, url, "", "leader", "x", "--as", "pod-1", "--http", "localhost:0", "--", "sh", "-c", "echo ready; exec sleep 100")
	one.await("ready")
	two := start(t, url, "", "leader", "x", "--as", "pod-2", "--http", "localhost:0", "--", "true")
	waiting(t, url, "x", 1)
	for c, want := range map[*command]int{one: 200, two: 503} {
		c.says("probes at ")
		_, at, _ := strings.Cut(c.said(), "probes at ")
		at, _, _ = strings.Cut(at, "\n")
		reply, err := http.Get(at)
		redistest.Must(t, err)
		defer reply.Body.Close()
		var status struct {
			Leader struct{ Identity string }
		}
		if err := json.NewDecoder(reply.Body).Decode(&status); err != nil || reply.StatusCode != want || status.Leader.Identity != "pod-1" {
			t.Errorf("%s: %s, %+v, %v", at, reply.Status, status, err)
		}
		// A standby is well too: a probe must not restart it.
		if alive, err := http.Get(at + "healthz"); err != nil || alive.StatusCode != 200 {
			t.Errorf("%shealthz: %v, %v", at, alive.Status, err)
		} else {
			alive.Body.Close()
		}
	}
}

func TestAttach(t *testing.T) {
	_, url := server(t)
	l, err := client(t, url).Mutex("x", holdfast.Fixed(time.Minute)).Lock(t.Context())
	redistest.Must(t, err)
	owner, err := l.Detach(t.Context())
	redistest.Must(t, err)
	start(t, url, "", "attach", "x", "--", "true").want(64)
	start(t, url, "", "attach", "x", "--owner", "somebody", "--", "true").want(64)
	start(t, url, "", "run", "x", "-n", "--", "true").want(75)
	start(t, url, "", "attach", "x", "--owner", owner.String(), "--", "sh", "-c", "exit 6").want(6)
	start(t, url, "", "run", "x", "-n", "--", "true").want(0)
	c := start(t, url, "", "attach", "x", "--owner", owner.String(), "--", "true")
	if c.want(75); strings.Contains(c.said(), owner.String()) {
		t.Errorf("it says %q", c.said())
	}
}
