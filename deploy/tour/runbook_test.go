// The commands of the runbook are commands that there are.

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// runbookCommands returns the commands in the pages of the runbook that begin with that word, by page.
func runbookCommands(t *testing.T, word string) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	pages, err := filepath.Glob("../runbook/*.md")
	redistest.Must(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		redistest.Must(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				if strings.HasPrefix(line, word+" ") {
					name := filepath.Base(page)
					all[name] = append(all[name], strings.TrimSpace(line))
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no page has a command %s", word)
	}
	return all
}

// shell runs a line as a shell does, with those folders before the others.
func shell(t *testing.T, line, folder string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// With --help at the end a command looks at its flags, and does nothing.
func TestTheRunbookUsesCommandsOfHoldfast(t *testing.T) {
	redistest.RealTime(t)
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "holdfast"), ".")
	build.Dir = "../../cmd/holdfast"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for page, lines := range runbookCommands(t, "holdfast") {
		for _, line := range lines {
			out, err := shell(t, line+" --help", folder)
			words := strings.Fields(line)
			if err != nil || !strings.Contains(out, "holdfast "+words[1]) {
				t.Errorf("%s: %s: %v\n%s", page, line, err, out)
			}
		}
	}
	if out, err := shell(t, "holdfast inspect orders:42 --wise --help", folder); err == nil {
		t.Errorf("a flag that is not there is taken:\n%s", out)
	}
}

func TestTheRunbookUsesCommandsOfRedis(t *testing.T) {
	server := redistest.Server(t)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		redistest.Missing(t, "no redis-cli found; apt-get install redis-tools")
	}
	_, port, err := net.SplitHostPort(server.Addr())
	redistest.Must(t, err)
	for page, lines := range runbookCommands(t, "redis-cli") {
		for _, line := range lines {
			if strings.Contains(line, "--latency-history") {
				continue // it has no end
			}
			out, err := shell(t, strings.Replace(line, "redis-cli", "redis-cli -e -p "+port, 1), "")
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", page, line, err, out)
			}
		}
	}
}
