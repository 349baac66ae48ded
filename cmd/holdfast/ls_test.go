// A script that has no lock ends; a list of very many names has bounds of time and memory, and belongs to the long run.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Of 100 000 locks among 300 000 keys the first line is there within a second, the list takes at most 60 MB, and Redis
// answers others at p99 within 5 ms of what it takes when idle.
func TestLsOfAHundredThousandLocks(t *testing.T) {
	redistest.LongRun(t)
	s, url := server(t)
	for from := 0; from < 100_000; from += 1000 {
		p := s.Admin().Pipeline()
		for n := from; n < from+1000; n++ {
			name := fmt.Sprintf("orders:%06d", n)
			p.HSet(t.Context(), name, fmt.Sprintf("5f3a9c41-0d2b-4c7e-9a10-%012x:1", n), 1)
			p.PExpire(t.Context(), name, time.Hour)
			p.Set(t.Context(), fmt.Sprint("page:", n), "some text", 0)
			p.Set(t.Context(), fmt.Sprint("session:", n), "some text", 0)
		}
		redistest.Must(t, redistest.Err(p.Exec(t.Context())))
	}
	idle := latency(t, s, func() { time.Sleep(5 * time.Second) })
	var first time.Duration
	var lines, memory int
	var c *command
	busy := latency(t, s, func() {
		began := time.Now()
		c = start(t, url, "", "ls")
		c.line()
		first, lines = time.Since(began), 1
		for range c.lines {
			if lines++; lines%10_000 == 0 {
				memory = max(memory, peakMemory(c.Process.Pid))
			}
		}
		c.want(0)
	})
	if lines != 100_001 || first > time.Second || memory == 0 || memory > 60 || busy > idle+5*time.Millisecond {
		t.Errorf("%d lines, the first after %v, %d MB, p99 of a PING %v, idle %v", lines, first, memory, busy, idle)
	}
}

// peakMemory returns the most that a process has had in memory so far, in MB: 0 once it has ended. On Linux its rusage
// would count what its parent had when it started the process, too.
func peakMemory(pid int) (mb int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, _ = fmt.Sscan(peak, &mb)
	return mb >> 10 // of kB
}

// latency returns the p99 of how long Redis takes to answer a PING while f runs.
func latency(t *testing.T, s *redistest.Proc, f func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var took []time.Duration
	var pinging sync.WaitGroup
	pinging.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if s.Admin().Ping(ctx).Err() == nil {
				took = append(took, time.Since(began))
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	f()
	stop()
	pinging.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}

// A script that evaluates what acquire or extend prints ends where there is no lock, whether it asked for that or
// not, unless it takes the output first and decides itself.
func TestAScriptWithoutItsLockEnds(t *testing.T) {
	_, url := server(t)
	redistest.Must(t, redistest.Err(client(t, url).Mutex("busy").Lock(t.Context())))
	const nobody = "redis://127.0.0.1:1" // nothing listens there
	for _, tc := range []struct {
		url, script string
		code        int
	}{
		{url, `eval "$($H acquire busy --lease 1m --try)"`, 75},
		{url, `set -e; eval "$($H acquire busy --lease 1m --wait 1s)"`, 75},
		{nobody, `eval "$($H acquire free --lease 1m --timeout 100ms)"`, 69},
		{url, `eval "$($H acquire free)"`, 64},
		{url, `eval "$($H acquire free --leese 1m)"`, 64},
		{url, `eval "$($H extend free --lease 1m --owner 01234567-89ab-cdef-0123-456789abcdef:1)"`, 76},
		{url, `eval "$($H extend free --lease 1m)"`, 64},
		{url, `out=$($H acquire busy --lease 1m --try) || echo 'it decides'; exit 9`, 9},
		{url, `test -z "$($H acquire busy --lease 1m --try --json)" && exit 8`, 8},
		{url, `eval "$($H acquire free --lease 1m --as "it's job 7")"; eval "$($H extend free --lease 2m --owner "$HOLDFAST_OWNER")"
			$H release free --owner "$HOLDFAST_OWNER" && exit 7`, 7},
	} {
		for _, shell := range []string{"sh", "bash"} {
			cmd := exec.CommandContext(t.Context(), shell, "-c", strings.ReplaceAll(tc.script, "$H ", binary+" ")+"\necho went on")
			cmd.Env = append(cmd.Environ(), "HOLDFAST_URL="+tc.url, "HOLDFAST_OWNER=")
			cmd.WaitDelay = time.Second
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tc.code || strings.Contains(string(out), "went on") {
				t.Errorf("%s: %s: code %d, want %d: %s", shell, tc.script, code, tc.code, out)
			}
		}
	}
}

// Who types has a shell that goes on, and its exit code.
func TestAShellInWhichSomebodyTypesGoesOn(t *testing.T) {
	_, url := server(t)
	redistest.Must(t, redistest.Err(client(t, url).Mutex("busy").Lock(t.Context())))
	s := shell(t, url)
	s.types("eval \"$($H acquire busy --lease 1m --try)\"\n")
	s.answers("echo code=$?\n", "code=75")
}
