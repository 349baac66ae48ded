package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A script that evaluates what acquire or extend prints ends where there is no lock, whether it asked for that or
// not, unless it takes the output first and decides itself.
func TestAScriptWithoutItsLockEnds(t *testing.T) {
	_, url := server(t)
	if _, err := client(t, url).Mutex("busy").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
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
		{url, `eval "$($H acquire free --lease 1m)"; $H release free --owner "$HOLDFAST_OWNER"; exit 7`, 7},
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
	if _, err := client(t, url).Mutex("busy").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := shell(t, url, "")
	s.types("eval \"$($H acquire busy --lease 1m --try)\"\n")
	s.types("echo code=$?\n")
	s.shows("code=75")
}
