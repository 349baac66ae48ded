// These tests run the command in a terminal.

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// screen is a shell in a terminal.
type screen struct {
	t    *testing.T
	file *os.File
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
}

// shell starts a shell with job control in a terminal of its own.
func shell(t *testing.T, url string) *screen {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+url, "PS1=$ ", "TERM=dumb", "H="+binary)
	file, err := pty.Start(cmd)
	redistest.Must(t, err)
	s := &screen{t: t, file: file}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 4096); ; {
			n, err := file.Read(b)
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = file.Close()
		<-done
	})
	return s
}

// types types a text.
func (s *screen) types(text string) {
	s.t.Helper()
	redistest.Must(s.t, redistest.Err(s.file.WriteString(text)))
}

// shows waits until the terminal shows a text, forgets all up to it, and returns what came before it.
func (s *screen) shows(text string) (before string) {
	s.t.Helper()
	redistest.Eventually(s.t, 20*time.Second, fmt.Sprintf("the terminal shows %q", text), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := s.text.String()
		at := strings.Index(all, text)
		if at < 0 {
			return fmt.Errorf("it shows %q", all)
		}
		before = all[:at]
		s.text.Next(at + len(text))
		return nil
	})
	return before
}

// answers types, and waits until the terminal shows what is to come of it.
func (s *screen) answers(text, shown string) {
	s.t.Helper()
	s.types(text)
	s.shows(shown)
}

func TestRun_TheProgramHasTheTerminal(t *testing.T) {
	_, url := server(t)
	s := shell(t, url)
	// The fields are the process group, and that in the foreground.
	s.answers("$H run x -- awk '{print \"fore\" \"ground:\", $5 == $8}' /proc/self/stat\n", "foreground: 1")
	s.answers("echo back=$?\n", "back=0")
}

// Ctrl-C ends what runs a program, and all that waits for it, as with flock(1).
func TestRun_CtrlCEndsTheScriptToo(t *testing.T) {
	_, url := server(t)
	locks := []string{"flock " + filepath.Join(t.TempDir(), "lock"), "$H run x", "$H leader x"}
	for _, lock := range locks {
		for _, how := range []string{"%s; echo on''ward", "bash -c '%s; %[1]s; echo on\"\"ward'", "%s | cat; echo on''ward"} {
			if lock == "$H leader x" && strings.Contains(how, "cat") {
				continue // it has no terminal, and leads again after a program that fails
			}
			s := shell(t, url)
			s.types(fmt.Sprintf(how, lock+` sh -c "echo re\"\"ady; exec sleep 100"`) + "\n") // a shell that is about to fork would wait for the sleep
			s.shows("ready")
			s.answers("\x03", "$ ")
			s.types("echo co''de=$?\n")
			if before := s.shows("code="); strings.Contains(before, "onward") {
				t.Errorf("%s: after Ctrl-C it goes on: %q", lock, before)
			}
			s.shows("130")
		}
	}
}

// A program that could not begin leaves the terminal to those who had it.
func TestRun_WithoutAProgramTheTerminalIsGivenBack(t *testing.T) {
	_, url := server(t)
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("#!/no/such/interpreter\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	s := shell(t, url)
	s.answers("bash -c '$H run x "+junk+"; read a; echo go\"\"t-$a'\n", "cannot run")
	s.answers("word\n", "got-word")
}

// Ctrl-Z stops what waits for a lock, as it stops flock(1).
func TestRun_SuspendedWhileItWaits(t *testing.T) {
	_, url := server(t)
	first := running(t, url, "beat", "x")
	s := shell(t, url)
	s.types("$H run x -- echo go''t-it\n")
	waiting(t, url, "x", 1)
	s.answers("\x1a", "Stopped")
	first.end()
	s.answers("fg\n", "got-it")
}

func TestRun_SuspendedAtTheTerminal(t *testing.T) {
	_, url := server(t)
	s := shell(t, url)
	s.answers("$H run x -- sh -c 'echo rea''dy; read a; echo go''t-$a'\n", "ready")
	s.answers("\x1a", "Stopped")
	s.answers("echo shell''-has-it\n", "shell-has-it")
	s.answers("fg\n", "run x")
	s.answers("word\n", "got-word")
	s.answers("echo code=$?\n", "code=0")
}

// getpass(3), ssh and sudo ask at the terminal, wherever the input of the program comes from, and if its output goes to
// a pager, as under flock(1).
func TestRun_AProgramAsksAtTheTerminal(t *testing.T) {
	_, url := server(t)
	for _, lock := range []string{"flock " + filepath.Join(t.TempDir(), "lock"), "$H run x"} {
		for _, how := range []string{
			"echo data | %s sh -c 'read a </dev/tty; echo go''t-$a'\n",
			"</dev/null %s sh -c 'read a </dev/tty; echo go''t-$a'\n",
			"%s sh -c 'read a; echo go''t-$a' | cat\n",
		} {
			s := shell(t, url)
			s.types(fmt.Sprintf(how, lock))
			s.answers("word\n", "got-word")
			s.answers("echo shell''-has-it\n", "shell-has-it")
		}
	}
}

func TestRun_InTheBackground(t *testing.T) {
	_, url := server(t)
	s := shell(t, url)
	s.answers("$H run x -- sh -c 'echo rea''dy; read a; echo go''t-$a' &\n", "ready")
	s.answers("until jobs | grep Stop''ped; do sleep 0.1; done\n", "Stopped") // it stops when it reads, and not before
	s.answers("fg\n", "run x")
	s.answers("word\n", "got-word")
}

// Where a write in the background stops a process, the loss of the lock is written, and the program is killed all the same.
func TestRun_ALossAtATerminalThatStopsWrites(t *testing.T) {
	rdb, url := server(t)
	s := shell(t, url)
	s.answers("stty tostop; $H run x --lease 3s --grace 1s -- sh -c 'trap \"\" TERM; echo re\"\"ady; exec sleep 100'; echo code=$?\n", "ready")
	redistest.Must(t, rdb.Admin().FlushAll(t.Context()).Err())
	s.shows("code=76")
}

// Top shows what stands, and what changes; at its end the terminal is as it was.
func TestTop(t *testing.T) {
	rdb, url := server(t)
	s := shell(t, url)
	redistest.Must(t, pty.Setsize(s.file, &pty.Winsize{Rows: 24, Cols: 100}))
	s.answers("TERM=xterm $H top; echo code=$?\n", alternate+"h")
	s.shows("nothing")
	start(t, url, "", "acquire", "deploy", "--lease", "1h", "--as", "job 811").want(0)
	s.shows("deploy")
	s.shows("job 811")
	redistest.Must(t, rdb.Admin().FlushAll(t.Context()).Err())
	s.shows("nothing")
	s.answers("q", alternate+"l")
	s.shows("code=0")

	s.answers("TERM=xterm $H top\n", alternate+"h")
	s.answers("\x1a", alternate+"l")
	s.shows("Stopped")
	// In the background top stops as soon as it touches the terminal. If the shell has not noticed that yet, its
	// first fg does not continue it, and says 150: 128 and SIGTTOU.
	s.answers("kill %1; fg; code=$?; [ $code != 150 ] || { fg; code=$?; }; echo code=$code\n", "code=143")
}

// alternate is what a terminal is told when a program begins (h) and ends (l) to use the whole screen.
const alternate = "\x1b[?1049"
