package child

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	// What these tests were started to ignore, as by nohup or in the background, a Relay would leave ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	os.Exit(m.Run())
}

// shell returns a program of the shell, whose output is read from the pipe that it returns.
func shell(t *testing.T, text string) (Program, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	redistest.Must(t, err)
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	null, err := os.Open(os.DevNull)
	redistest.Must(t, err)
	t.Cleanup(func() { _ = null.Close() })
	return Program{Args: []string{"sh", "-c", text}, Env: os.Environ(), In: null, Out: w, Err: w}, r
}

// A program whose hold is about to end has the whole grace to end in, however it was lost, and even if it is stopped.
func TestAProgramHasItsGrace(t *testing.T) {
	const grace = time.Minute
	for what, tc := range map[string]struct {
		program  string
		deadline time.Duration // from the beginning of the program
		taken    bool
	}{
		"no renewal gets through":  {"echo ready; while :; do sleep 0.01; done", grace + time.Second, false},
		"the hold is taken away":   {"echo ready; while :; do sleep 0.01; done", time.Hour, true},
		"the program is stopped":   {"echo ready; kill -STOP $$; while :; do sleep 0.01; done", grace + time.Second, false},
		"stopped, and it is taken": {"echo ready; kill -STOP $$; while :; do sleep 0.01; done", time.Hour, true},
	} {
		t.Run(what, func(t *testing.T) {
			relay := NewRelay(func() {})
			defer relay.Stop()
			p, out := shell(t, "trap 'exit 9' TERM; "+tc.program)
			done := make(chan struct{})
			go func() {
				_, _ = out.Read(make([]byte, 1)) // it is ready
				if tc.taken {
					close(done)
				}
			}()
			deadline := time.Now().Add(tc.deadline)
			told := false
			got, err := Under(relay, Hold{Done: done, Deadline: func() time.Time { return deadline }}, p,
				Rules{Grace: grace, Told: func() { told = true }})
			want := Outcome{Code: 9, Lost: true}
			if err != nil || got != want || !told {
				t.Errorf("%+v, %v, told %v; want %+v", got, err, told, want)
			}
		})
	}
}

// A log that takes no text must not let a program go on without its hold.
func TestAProgramIsEndedThoughNobodyCanBeTold(t *testing.T) {
	relay := NewRelay(func() {})
	defer relay.Stop()
	p, out := shell(t, "trap 'echo ended; exit 9' TERM; echo ready; while :; do sleep 0.01; done")
	taken, ended := make(chan struct{}), make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		lines.Scan()
		close(taken)
		lines.Scan()
		close(ended)
	}()
	got, err := Under(relay, Hold{Done: taken, Deadline: func() time.Time { return time.Now().Add(time.Hour) }}, p, Rules{
		Grace: time.Minute,
		Told: func() {
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the program goes on while nobody can be told")
			}
		},
	})
	if want := (Outcome{Code: 9, Lost: true}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Each program has the signals as this process had them, however many ran before: a shell cannot trap a signal that it was
// started to ignore.
func TestAProgramIgnoresNoMoreThanTheFirst(t *testing.T) {
	relay := NewRelay(func() {})
	defer relay.Stop()
	for range 3 {
		p, out := shell(t, "trap 'echo trapped' TTOU; kill -s TTOU $$")
		_, err := Under(relay, Hold{Deadline: func() time.Time { return time.Now().Add(time.Hour) }}, p, Rules{})
		redistest.Must(t, err)
		redistest.Must(t, p.Out.Close())
		if said, err := io.ReadAll(out); string(said) != "trapped\n" || err != nil {
			t.Errorf("it says %q, %v", said, err)
		}
	}
}

// A program does not begin under a hold that is over.
func TestAHoldThatIsOverBeforeTheProgramBegins(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	for what, hold := range map[string]Hold{
		"its deadline has passed": {Deadline: func() time.Time { return time.Now().Add(-time.Second) }},
		"it was taken away":       {Done: gone, Deadline: func() time.Time { return time.Now().Add(time.Hour) }},
	} {
		relay := NewRelay(func() {})
		file := filepath.Join(t.TempDir(), "begun")
		p, _ := shell(t, "touch "+file)
		_, err := Under(relay, hold, p, Rules{Grace: time.Second, Leave: true})
		if _, begun := os.Stat(file); !errors.Is(err, ErrOver) || begun == nil {
			t.Errorf("%s: %v, and the program has begun: %v", what, err, begun == nil)
		}
		relay.Stop()
	}
}

// Whoever asks this process to end after the lock was granted, and before the program begins, is heard: it never begins.
func TestASignalBeforeTheProgramBegins(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP} {
		ended := make(chan struct{})
		relay := NewRelay(func() { close(ended) })
		redistest.Must(t, syscall.Kill(os.Getpid(), s))
		<-ended
		file := filepath.Join(t.TempDir(), "begun")
		p, _ := shell(t, "touch "+file)
		_, err := Under(relay, Hold{Deadline: func() time.Time { return time.Now().Add(time.Hour) }}, p, Rules{Grace: time.Second})
		if _, begun := os.Stat(file); !errors.Is(err, ErrAsked) || begun == nil {
			t.Errorf("%v: %v, and the program has begun: %v", s, err, begun == nil)
		}
		relay.Stop()
	}
}
