// These tests run programs under locks.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestRun_ExitsAsTheProgramDoes(t *testing.T) {
	_, url := server(t)
	notAProgram := filepath.Join(t.TempDir(), "text")
	redistest.Must(t, os.WriteFile(notAProgram, []byte("no program"), 0o600))
	for what, tc := range map[string]struct {
		code    int
		command []string
	}{
		"done":                {0, []string{"true"}},
		"failed":              {3, []string{"sh", "-c", "exit 3"}},
		"killed":              {137, []string{"sh", "-c", "kill -9 $$"}},
		"ended":               {143, []string{"sh", "-c", "kill $$"}},
		"no such program":     {127, []string{"no-such-program"}},
		"no such file":        {127, []string{"/no/such/program"}},
		"not a program":       {126, []string{notAProgram}},
		"arguments with dash": {0, []string{"test", "--try", "=", "--try"}}, // consul#1063
	} {
		t.Run(what, func(t *testing.T) {
			start(t, url, "", append([]string{"run", "x", "--"}, tc.command...)...).want(tc.code)
			c := start(t, url, "", "run", "x", "-n", "--", "true")
			if c.want(0); c.said() != "" {
				t.Errorf("it says %q", c.said())
			}
		})
	}
}

func TestRun_WrongUse(t *testing.T) {
	_, url := server(t)
	for _, args := range [][]string{
		{"run"}, {"run", "x"}, {"run", "x", "--"}, {"run", "x", "y", "--", "true"}, {"run", "--", "true"},
		{"run", "x", "--no-such-flag", "--", "true"},
		{"run", "x", "--try", "--wait", "1s", "--", "true"},
		{"run", "x", "--fair", "--shared", "--", "true"},
		{"run", "x", "--permits", "2", "--", "true"},
		{"run", "x", "--grace", "20s", "--", "true"},
		{"run", "x", "--on-lost", "panic", "--", "true"},
		{"run", "x", "--at-most", "5s", "--grace", "5s", "--", "true"},
		{"run", "x", "--shared", "--at-least", "5s", "--", "true"},
		{"run", "x", "--tick", "soon", "--", "true"},
		// What would do less than it seems to.
		{"run", "x", "--tick-keep", "1h", "--", "true"},
		{"run", "x", "--multi", "y,", "--", "true"},
		{"run", "x", "--permits", "0", "--of", "5", "--", "true"},
		{"run", "x", "--busy-code", "256", "--", "true"},
		{"run", "x", "--busy-code", "-1", "--", "true"},
		{"run", "", "--", "true"}, {"attach", "", "--owner", "x", "true"}, {"leader", "", "true"}, {"acquire", "", "--lease", "1m"},
		{"wait", ""}, {"held", ""}, {"ls", ""}, {"watch", ""}, {"console", ""}, {"inspect", "x", ""}, {"check", ""},
		{"run", "x", "--url", "localhost", "--", "true"},
		{"run", "x", "--url", "redis+ring://localhost", "--", "true"},
		{"no-such-command"},
		{"ls", "a", "b"}, {"ls", "--owners"}, {"inspect"}, {"inspect", "x", "--nonsense"}, {"watch", "--every", "0s"},
		{"acquire", "x"}, {"acquire", "x", "--lease", "1ms"}, {"acquire", "x", "--lease", "1m", "-n", "-w", "1s"},
		{"acquire", "x", "--lease", "1m", "-w", "-1s"}, {"acquire", "holdfast_x", "--lease", "1m"},
		{"extend", "x", "--owner", "y"}, {"release", "x", "--force", "--ask"}, {"release", "x", "--force", "--owner", "y"},
		{"latch", "wait", "x", "-w", "0s"}, {"latch", "set", "x"}, {"sem", "set", "x", "1", "--permits", "--counting"},
		{"once", "show", "x", ""}, {"once", "show", "x", "y", "--result", "--json"}, {"check", "--kinds", "nonsense"},
		{"check", "--acl"},
	} {
		c := start(t, url, "", args...)
		if c.want(64); c.said() == "" {
			t.Errorf("%q: it says nothing", args)
		}
	}
	c := start(t, url, "", "run", "x", "--url", "redis://user:secret@localhost:x?sentinel_password=secret", "--", "true")
	if c.want(64); strings.Contains(c.said(), "secret") {
		t.Errorf("it says %q", c.said())
	}
}

// The command that runs needs no dashes before it, as with env(1), timeout(1) and flock(1). What follows it is its own.
func TestRun_WithoutDashes(t *testing.T) {
	_, url := server(t)
	for _, args := range [][]string{
		{"run", "x", "-n", "echo", "--try"}, {"run", "-n", "x", "echo", "--try"}, {"run", "-n", "x", "--lease=20s", "--", "echo", "--try"},
		{"leader", "x", "echo", "--try"},
	} {
		if out := start(t, url, "", args...).want(0); !slices.Equal(out, []string{"--try"}) {
			t.Errorf("%q: it prints %q", args, out)
		}
	}
	if out := start(t, url, "", "run", "x", "--help").want(0); len(out) == 0 {
		t.Error("there is no help behind the name")
	}
}

// A lease or a time that is too short for the default of --grace needs no --grace.
func TestRun_TheDefaultGraceGivesWay(t *testing.T) {
	_, url := server(t)
	for _, short := range []string{"--lease=6s", "--at-most=8s", "--lease=100ms"} {
		start(t, url, "", "run", "x", short, "true").want(0)
	}
	start(t, url, "", "leader", "x", "--lease=6s", "true").want(0)
}

// running starts the command with a program that beats, and waits until that runs.
func running(t *testing.T, url, role string, args ...string) *command {
	t.Helper()
	args = append([]string{"run"}, args...)
	c := start(t, url, role, append(args, "--", os.Args[0], filepath.Join(t.TempDir(), "beats"))...)
	c.await("ready")
	return c
}

func TestRun_ABusyLock(t *testing.T) {
	_, url := server(t)
	first := running(t, url, "beat", "x")
	for code, args := range map[int][]string{
		75: {"run", "x", "-n"},
		0:  {"run", "x", "-n", "-E", "0"},
		9:  {"run", "x", "-w", "300ms", "-E", "9"},
	} {
		c := start(t, url, "", append(args, "--", "false")...)
		who := fmt.Sprintf("/pid %d", first.Process.Pid)
		if c.want(code); !strings.Contains(c.said(), "held by another") || !strings.Contains(c.said(), who) {
			t.Errorf("%q: it says %q", args, c.said())
		}
	}
	waits := start(t, url, "", "run", "x", "-w", "20s", "--", "sh", "-c", "echo $HOLDFAST_WAITED")
	waiting(t, url, "x", 1)
	first.end()
	if waited, err := strconv.ParseFloat(waits.line(), 64); err != nil || waited <= 0 {
		t.Errorf("waited for %v, %v", waited, err)
	}
	waits.want(0)
}

// waiting waits until n wait for the lock.
func waiting(t *testing.T, url, name string, n int) {
	t.Helper()
	client := client(t, url)
	redistest.Eventually(t, 20*time.Second, fmt.Sprintf("%d waiters of %q", n, name), func() error {
		i, err := client.Inspect(t.Context(), name)
		if err == nil && i.Waiters != n {
			err = fmt.Errorf("%v", i)
		}
		return err
	})
}

// Who waits hears whom it waits for, and that Redis does not answer; an outage is not a busy lock.
func TestRun_AnOutageWhileItWaits(t *testing.T) {
	s, url := server(t)
	first := running(t, url, "beat", "x")
	c := start(t, url, "", "run", "x", "--wait", "6s", "--timeout", "1s", "-E", "0", "--", "true")
	c.says(fmt.Sprintf("/pid %d", first.Process.Pid))
	s.Freeze()
	c.says("Redis does not answer")
	c.want(69)
	s.Thaw()
}

// says waits until the command has said something to people.
func (c *command) says(text string) {
	c.t.Helper()
	redistest.Eventually(c.t, 20*time.Second, fmt.Sprintf("it says %q", text), func() error {
		if !strings.Contains(c.said(), text) {
			return fmt.Errorf("it says %q", c.said())
		}
		return nil
	})
}

// The program knows of its own lock only, and not of one that its caller holds.
func TestRun_TheCallersLockIsNotTheProgramsOwn(t *testing.T) {
	_, url := server(t)
	tell := []string{"--", "sh", "-c", "echo $HOLDFAST_LOCK/$HOLDFAST_ELECTION/$HOLDFAST_TOKEN/$HOLDFAST_OWNER"}
	for _, outer := range [][]string{{"run", "x", "--pass-owner"}, {"leader", "x"}} {
		for want, inner := range map[string][]string{
			"b///": {"run", "b", "--multi", "c"},
			"p///": {"run", "p", "-p", "1", "--of", "2"},
		} {
			c := start(t, url, "", slices.Concat(outer, []string{"--", binary}, inner, tell)...)
			redistest.Equal(t, c.line(), want, "%q (%q in %q)", inner, outer)
			c.want(0)
		}
	}
}

// A name or an argument with control characters does nothing to a terminal.
func TestNothingMovesTheTerminal(t *testing.T) {
	_, url := server(t)
	const evil = "a\x1b[2J\u009b2J\u202eb\r"
	for _, args := range [][]string{
		{"run", evil, "--tick", "2026-11-24T02:00Z", "true"}, {"run", evil, "--tick", "2026-11-24T02:00Z", "true"},
		{"leader", evil, "true"}, {"run", "x", "--" + evil}, {evil}, {"run", "x", "--tick", evil, "true"}, {"run", "x", evil},
	} {
		c := start(t, url, "", args...)
		c.code()
		if strings.ContainsAny(c.said(), "\x1b\u009b\u202e\r") {
			t.Errorf("%q: it says %q", args, c.said())
		}
	}
}

func TestRun_WhatTheProgramIsTold(t *testing.T) {
	_, url := server(t)
	tell := []string{"--", "sh", "-c", "echo $HOLDFAST_LOCK; echo $HOLDFAST_TOKEN; echo $HOLDFAST_LEASE_UNTIL; echo $HOLDFAST_WAITED; echo $HOLDFAST_OWNER"}
	var last int64
	for range 2 {
		c := start(t, url, "", append([]string{"run", "x"}, tell...)...)
		redistest.Equal(t, c.line(), "x", "the lock is %q")
		token, err := strconv.ParseInt(c.line(), 10, 64)
		if err != nil || token <= last {
			t.Errorf("token %d after %d, %v", token, last, err)
		}
		last = token
		until, err := time.Parse(time.RFC3339Nano, c.line())
		if left := time.Until(until); err != nil || left < 20*time.Second || left > 30*time.Second {
			t.Errorf("%v left, %v", left, err)
		}
		if waited, err := strconv.ParseFloat(c.line(), 64); err != nil || waited > 5 {
			t.Errorf("waited for %v s, %v", waited, err)
		}
		redistest.Equal(t, c.line(), "", "the program knows the owner %q")
		c.want(0)
	}
	c := start(t, url, "", append([]string{"run", "x", "--pass-owner"}, tell...)...)
	var owner string
	for range 5 {
		owner = c.line()
	}
	redistest.Check(t, redistest.Err(holdfast.ParseOwner(owner)))
	c.want(0)
}

// consul#797, #1210, #2022, #2489: each signal reaches the whole tree, and not the command alone.
func TestRun_EachSignalReachesTheWholeTree(t *testing.T) {
	_, url := server(t)
	c := start(t, url, "tree", "run", "x", "--", os.Args[0])
	c.await("root ready", "leaf ready")
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTERM} {
		c.send(s)
		c.await("root "+s.String(), "leaf "+s.String())
	}
	c.want(0)
}

// What this process was started to ignore, the program goes on to ignore.
func TestRun_NohupStaysIgnored(t *testing.T) {
	_, url := server(t)
	c := start(t, url, "", "run", "x", "--", "sh", "-c", "trap '' HUP; exec "+binary+" run y -- sh -c 'echo ready; read x'")
	c.await("ready")
	for _, pid := range c.below() {
		redistest.Must(t, syscall.Kill(pid, syscall.SIGHUP))
	}
	fmt.Fprintln(c.in)
	c.want(0)
}

// consul#4439: a signal ends the wait at once, and nothing is left in the queue.
func TestRun_ASignalEndsTheWait(t *testing.T) {
	_, url := server(t)
	running(t, url, "beat", "x")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		c := start(t, url, "", "run", "x", "--", "echo", "ran")
		waiting(t, url, "x", 1)
		c.send(s)
		if rest := c.want(128 + int(s)); len(rest) > 0 {
			t.Errorf("%v: %q", s, rest)
		}
		waiting(t, url, "x", 0)
	}
}

// A program that is stopped has its lock renewed; the command stops with it when it is asked to.
func TestRun_StoppedAndContinued(t *testing.T) {
	_, url := server(t)
	c := running(t, url, "beat", "x")
	program := c.below()[0]
	c.send(syscall.SIGTSTP)
	inState(t, program, "T")
	inState(t, c.Process.Pid, "T")
	c.send(syscall.SIGCONT)
	inState(t, program, "S", "R")
	c.end()
}

// Nobody could continue the first process of a session: Ctrl-Z does nothing to it.
func TestRun_StoppedWhereNobodyCouldContinueIt(t *testing.T) {
	_, url := server(t)
	c := startIn(t, &syscall.SysProcAttr{Setsid: true}, url, "leaf", "run", "x", "--", os.Args[0])
	c.await("leaf ready")
	c.send(syscall.SIGTSTP)
	c.send(syscall.SIGUSR1)
	c.await("leaf " + syscall.SIGUSR1.String())
	c.send(syscall.SIGTERM)
	c.want(0)
}

// If the lease ends while both are stopped, the program does not do one step more.
func TestRun_StoppedForLongerThanTheLease(t *testing.T) {
	_, url := serverAlone(t)
	c, file := doomed(t, url, "run", "x")
	c.send(syscall.SIGTSTP)
	inState(t, c.Process.Pid, "T")
	next := start(t, url, "beat", "run", "x", "--", os.Args[0], file)
	next.await("ready")
	c.send(syscall.SIGCONT)
	c.want(76)
	next.end()
	oneAfterTheOther(t, file, 2)
}

// doomed starts the command with a program that takes no notice of SIGTERM, under a short lease. It returns the command,
// and the file of the program's beats.
func doomed(t *testing.T, url string, args ...string) (c *command, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "beats")
	c = start(t, url, "stubborn", append(args, "--lease", "1s", "--grace", "300ms", "--", os.Args[0], file)...)
	c.await("ready")
	return c, file
}

// oneAfterTheOther fails the test if any of n programs still worked when the next one began.
func oneAfterTheOther(t *testing.T, file string, n int) {
	t.Helper()
	redistest.Equal(t, len(beats(t, file)), n, "%d programs, want %d", n)
	for i, next := range beats(t, file)[1:] {
		if last := lastBeat(t, file, i); last.After(next[0]) {
			t.Errorf("the program %d worked until %v, the next one from %v", i, last, next[0])
		}
	}
}

// If the command is killed, the program is too, and the lock is free when the lease is over.
func TestRun_TheCommandIsKilled(t *testing.T) {
	_, url := server(t)
	c, _ := doomed(t, url, "run", "x")
	program := c.below()[0]
	c.send(syscall.SIGKILL)
	c.want(-9)
	inState(t, program, gone...)
	start(t, url, "", "run", "x", "--", "true").want(0)
}

// consul#9788, etcdctl: a program that takes no notice of SIGTERM is gone before Redis can grant the lock to
// another, whatever the loss is.
func TestRun_ALossEndsTheProgramInTime(t *testing.T) {
	for _, how := range [][]string{{"run", "x"}, {"leader", "x", "--once"}} {
		t.Run("Redis is killed: "+how[0], func(t *testing.T) {
			s, url := serverAlone(t)
			c, file := doomed(t, url, how...)
			lost := time.Now()
			s.Kill()
			c.want(76)
			if last := lastBeat(t, file, 0); last.After(lost.Add(time.Second)) {
				t.Errorf("the program worked for %v after Redis was killed", last.Sub(lost))
			}
			if !strings.Contains(c.said(), "the program is ended") {
				t.Errorf("it says %q", c.said())
			}
		})
	}
	t.Run("Redis is frozen", func(t *testing.T) {
		s, url := serverAlone(t)
		c, file := doomed(t, url, "run", "x")
		s.Freeze()
		c.want(76)
		s.Thaw()
		next := start(t, url, "beat", "run", "x", "--", os.Args[0], file)
		next.await("ready")
		next.end()
		oneAfterTheOther(t, file, 2)
	})
	t.Run("an operator takes it", func(t *testing.T) {
		_, url := serverAlone(t)
		c, _ := doomed(t, url, "run", "x")
		if was, err := client(t, url).Mutex("x").ForceRelease(t.Context()); err != nil || !was {
			t.Fatal(was, err)
		}
		c.want(76)
	})
}

// A program that ends before the next renewal has worked without the lock, or the lead, as well.
func TestRun_ALossThatOnlyTheReleaseFinds(t *testing.T) {
	for _, how := range [][]string{
		{"run", "x"},
		{"run", "x", "-s"},
		{"run", "x", "-p", "1", "--of", "2"},
		{"run", "x", "--fair"},
		{"run", "x", "--multi", "y"},
		{"leader", "x"},
		{"leader", "x", "--once"},
	} {
		for code, want := range map[int]int{0: 76, 3: 3} {
			if code != 0 && slices.Equal(how, []string{"leader", "x"}) {
				continue // it campaigns again
			}
			s, url := server(t)
			c := start(t, url, "", slices.Concat(how, []string{"--", "sh", "-c", fmt.Sprint("echo ready; read a; exit ", code)})...)
			c.await("ready")
			redistest.Must(t, s.Admin().FlushAll(t.Context()).Err())
			fmt.Fprintln(c.in)
			c.want(want)
			if found := strings.Contains(c.said(), "found out when the program had ended"); !found && (how[0] == "run" || want == 76) {
				t.Errorf("%v: it says %q", how, c.said())
			}
		}
	}
}

// Whoever has stopped the program, a signal that ends this process ends it too.
func TestRun_ASignalEndsAProgramThatIsStopped(t *testing.T) {
	_, url := server(t)
	c := start(t, url, "", "run", "x", "--", "sh", "-c", "echo ready; kill -STOP $$; sleep 100")
	c.await("ready")
	inState(t, c.below()[0], "T")
	c.end()
}

func lastBeat(t *testing.T, file string, program int) time.Time {
	t.Helper()
	all := beats(t, file)[program]
	return all[len(all)-1]
}

// consul#2022, consul#873: what the program has started ends with it when the lock is lost.
func TestRun_ALossEndsTheWholeTree(t *testing.T) {
	s, url := server(t)
	file := filepath.Join(t.TempDir(), "beats")
	c := start(t, url, "stubborn", "run", "x", "--lease", "1s", "--grace", "300ms", "--",
		"sh", "-c", fmt.Sprintf("%q %q & wait", os.Args[0], file))
	c.await("ready")
	shell := c.below()[0]
	beats := below(t, shell)[0]
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(beats, syscall.SIGKILL) // it holds the output of the test, and go test would wait for it
		}
	})
	s.Kill()
	c.want(76)
	inState(t, beats, gone...)
}

func TestRun_OnLostLeave(t *testing.T) {
	s, url := server(t)
	c := start(t, url, "", "run", "x", "--lease", "1s", "--grace", "300ms", "--on-lost", "leave", "--", "sh", "-c", "echo ready; read x; echo done")
	c.await("ready")
	s.Kill()
	c.says("goes on without it")
	fmt.Fprintln(c.in)
	c.await("done")
	c.want(76)
}

// A program that may go on without the lock goes on, even if the lock was lost while it was stopped.
func TestRun_OnLostLeaveWhileItIsStopped(t *testing.T) {
	_, url := server(t)
	c := start(t, url, "", "run", "x", "--lease", "1s", "--grace", "300ms", "--on-lost", "leave", "--", "sh", "-c", "echo ready; read x; echo done")
	c.await("ready")
	c.send(syscall.SIGTSTP)
	inState(t, c.Process.Pid, "T")
	start(t, url, "", "run", "x", "--", "true").want(0)
	c.send(syscall.SIGCONT)
	fmt.Fprintln(c.in)
	c.await("done")
	c.want(76)
}

// What Redis does for a moment, the program does not notice.
func TestRun_AShortOutageIsNoLoss(t *testing.T) {
	s, url := serverAlone(t)
	c := start(t, url, "", "run", "x", "--lease", "6s", "--grace", "300ms", "--", "sh", "-c", "echo ready; read x; exit 4")
	c.await("ready")
	s.Freeze()
	time.Sleep(2200 * time.Millisecond) // a renewal falls into it
	s.Thaw()
	fmt.Fprintln(c.in)
	if c.want(4); c.said() != "" {
		t.Errorf("it says %q", c.said())
	}
}

func TestRun_AtMost(t *testing.T) {
	_, url := server(t)
	file := filepath.Join(t.TempDir(), "beats")
	begun := time.Now()
	c := start(t, url, "stubborn", "run", "x", "--at-most", "1s", "--grace", "300ms", "--", os.Args[0], file)
	c.want(76)
	if last := lastBeat(t, file, 0); last.Sub(begun) < 600*time.Millisecond {
		t.Errorf("it ran for %v", last.Sub(begun))
	}
	start(t, url, "", "run", "x", "-w", "5s", "--", "true").want(0)
}

// cronlock, cronlocker: a job that is done in a moment is not run again by a clock that is a little late.
func TestRun_AtLeast(t *testing.T) {
	_, url := server(t)
	start(t, url, "", "run", "x", "--at-least", "1h", "--", "true").want(0)
	start(t, url, "", "run", "x", "-n", "--", "true").want(75)
	begun := time.Now()
	start(t, url, "", "run", "y", "--at-least", "500ms", "--", "true").want(0)
	start(t, url, "", "run", "y", "--", "true").want(0)
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("it was held for %v", took)
	}
}

func TestRun_ATickRunsOnce(t *testing.T) {
	_, url := server(t)
	ran := 0
	for _, tick := range []string{"2026-11-24T02:00Z", "2026-11-24T02:00:00Z", "2026-11-24T03:00:00+01:00", "2026-11-25T02:00Z"} {
		if rest := start(t, url, "", "run", "x", "--tick", tick, "--", "echo", "ran").want(0); len(rest) > 0 {
			ran++
		}
	}
	redistest.Equal(t, ran, 2, "two ticks ran %d times")
}

func TestRun_Splay(t *testing.T) {
	_, url := server(t)
	start(t, url, "", "run", "x", "--splay", "50ms", "--", "true").want(0)
	c := start(t, url, "", "run", "x", "--splay", "1000h", "--", "true")
	c.says("begins in")
	c.send(syscall.SIGHUP)
	c.want(129)
}

func TestRun_SharedAndExclusive(t *testing.T) {
	_, url := server(t)
	one, two := running(t, url, "beat", "x", "-s"), running(t, url, "beat", "x", "-s", "-n")
	start(t, url, "", "run", "x", "-x", "-n", "--", "true").want(75)
	for _, c := range []*command{one, two} {
		c.end()
	}
	running(t, url, "beat", "x", "-x", "-n")
	start(t, url, "", "run", "x", "-s", "-n", "--", "true").want(75)
}

func TestRun_Permits(t *testing.T) {
	_, url := server(t)
	running(t, url, "beat", "x", "-p", "2", "--of", "3")
	running(t, url, "beat", "x", "-p", "1", "--of", "3", "-n")
	start(t, url, "", "run", "x", "-p", "1", "--of", "3", "-n", "--", "true").want(75)
	start(t, url, "", "run", "x", "-p", "1", "--of", "4", "--", "true").want(64)
}

func TestRun_Fair(t *testing.T) {
	_, url := server(t)
	first := running(t, url, "beat", "x", "--fair")
	var waits []*command
	for n := range 3 {
		waits = append(waits, start(t, url, "", "run", "x", "--fair", "--", "sh", "-c", "date +%s%N; sleep 0.01"))
		waiting(t, url, "x", n+1)
	}
	first.end()
	last := ""
	for n, c := range waits {
		at := c.line()
		if c.want(0); at <= last {
			t.Errorf("the waiter %d ran out of turn", n)
		}
		last = at
	}
}

func TestRun_Multi(t *testing.T) {
	_, url := server(t)
	c := running(t, url, "beat", "a", "--multi", "b,c")
	for _, name := range []string{"a", "b", "c"} {
		start(t, url, "", "run", name, "-n", "--", "true").want(75)
	}
	c.end()
	start(t, url, "", "run", "c", "-n", "--", "true").want(0)
}

func TestRun_Quorum(t *testing.T) {
	one, a := server(t)
	_, b := server(t)
	_, c := server(t)
	urls := strings.Join([]string{a, b, c}, ",")
	first := running(t, "", "beat", "x", "--quorum", urls)
	start(t, "", "", "run", "x", "-n", "--quorum", urls, "--", "true").want(75)
	first.end()
	one.Kill()
	start(t, "", "", "run", "x", "--timeout", "1s", "--quorum", urls, "--", "true").want(0)
	start(t, "", "", "run", "x", "--timeout", "300ms", "--quorum", a+",redis://localhost:1", "--", "true").want(69)
}
