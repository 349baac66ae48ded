// docs/operations.md: each of its commands is run, on what it is about.

package operators

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/once"
)

// blocks are the shell commands of a section.
var blocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// section returns the commands below a heading of docs/operations.md, without those that last until somebody ends them.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../../../../../docs/operations.md")
	redistest.Must(t, err)
	_, rest, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("no section %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var script strings.Builder
	for _, block := range blocks.FindAllStringSubmatch(rest, -1) {
		for line := range strings.Lines(block[1]) {
			if !strings.HasPrefix(line, "holdfast watch") && !strings.HasPrefix(line, "redis-cli PSUBSCRIBE") {
				script.WriteString(line)
			}
		}
	}
	return script.String()
}

// shell runs a script, in which any command that fails is the last, and returns what it prints.
type shell func(t *testing.T, script string, env ...string) string

// shellTo returns a shell whose holdfast and redis-cli talk to one server.
func shellTo(t *testing.T, server *redistest.Proc) shell {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		redistest.Missing(t, "no redis-cli found")
	}
	dir := t.TempDir()
	_, port, _ := strings.Cut(server.Addr(), ":")
	// redis-cli exits with 0 after an error of the server, unless it is told not to.
	wrapper := "#!/bin/sh\nexec " + cli + " -e -p " + port + ` "$@"` + "\n"
	redistest.Must(t, os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(wrapper), 0o700))
	if out, err := exec.Command("go", "build", "-o", dir, "../../..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(t *testing.T, script string, env ...string) string {
		t.Helper()
		cmd := exec.CommandContext(redistest.Within(t, soon), "sh", "-eux", "-c", script)
		cmd.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), envURL+"="+url(server)), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		return string(out)
	}
}

func TestTheCommandsOfOperationsDoWhatTheySay(t *testing.T) {
	server := server(t)
	sh := shellTo(t, server)
	for heading, play := range map[string]func(*testing.T, *redistest.Proc, shell){
		"A lock is stuck": stuck, "A deploy hangs": hangs, "Redis is full": full,
	} {
		t.Run(heading, func(t *testing.T) { play(t, server, sh) })
		redistest.Must(t, server.Admin().FlushAll(t.Context()).Err())
	}
}

func stuck(t *testing.T, server *redistest.Proc, sh shell) {
	holder, second, third := client(t, server, "pod-1"), client(t, server, "pod-2"), client(t, server, "pod-3")
	clienttest.Grab(t, holder.Mutex("orders:42"))
	known(t, server, "orders:42", "pod-1")
	next := make(chan string, 2)
	for _, c := range []*holdfast.Client{second, third} {
		go func() {
			l, err := c.Mutex("orders:42").Lock(t.Context())
			if err == nil {
				next <- l.Owner().String()
			}
		}()
	}
	waiting(t, server, "orders:42", 2)
	s := holder.PermitSemaphore("uploads")
	redistest.Must(t, s.SetPermits(t.Context(), 2))
	permit := s.IDs(clienttest.Grab(t, s.Locker(1)))[0]
	d := done{out: sh(t, section(t, "A lock is stuck"), "permit="+permit)}
	// It is taken once by each of the ways: so both who waited have got it.
	d.want(t, 0, "orders:42: mutex", "held by  pod-1", "waiting  2", "who", "pod-1", "orders:42: taken from pod-1",
		"DEL orders:42", "PUBLISH", "uploads: permits", "uploads: taken from permit "+permit[:8])
	for range 2 {
		within(t, next, "the lock of a waiter")
	}
	if n, err := s.Acquired(t.Context()); n != 0 || err != nil {
		t.Errorf("%d permits are taken, %v", n, err)
	}
}

func hangs(t *testing.T, server *redistest.Proc, sh shell) {
	c := client(t, server, "pod-1")
	sh(t, "holdfast acquire deploy --lease 1h --as 'ci job 811'\n"+
		"holdfast latch set deploy:shards 2\nholdfast sem set deploy:slots 3 --counting\nholdfast sem drain deploy:slots")
	term := within(t, campaign(t, c, "scheduler"), "a term")
	_ = once.Do(t.Context(), c.Once("charge", once.KeepErrors(time.Hour)), "order-7",
		func(context.Context) error { return context.Canceled })
	awaited, taken := make(chan error, 1), make(chan error, 1)
	go func() { awaited <- c.Latch("deploy:shards").Wait(t.Context()) }()
	go func() { taken <- c.Semaphore("deploy:slots").Acquire(t.Context(), 2) }()
	d := done{out: sh(t, section(t, "A deploy hangs"))}
	d.want(t, 0, "NAME", "deploy ", "ci job 811", "deploy:shards  latch", "2 to come", "deploy:slots   semaphore", "0 of 3 free",
		"held by  ci job 811", "latch, 2 to come", "latch down", "1\n", "semaphore, 0 of 3 free",
		"scheduler: leader", "identity", "scheduler: asked to resign: ", "once, failed", "once forget")
	for _, waits := range []<-chan error{awaited, taken} {
		redistest.Check(t, within(t, waits, "the end of a wait"))
	}
	<-term.Done()
}

func full(t *testing.T, server *redistest.Proc, sh shell) {
	c := client(t, server, "pod-1")
	l := clienttest.Grab(t, c.Mutex("orders:42"))
	o := c.Once("charge")
	work := func(context.Context) error { return nil }
	redistest.Must(t, once.Do(t.Context(), o, "order-7", work))
	for _, set := range [][2]string{{"maxmemory-policy", "noeviction"}, {"maxmemory", "1kb"}} {
		redistest.Must(t, server.Admin().ConfigSet(t.Context(), set[0], set[1]).Err())
	}
	run(t, server, "acquire", "probe", "--lease", "1s", "--try").want(t, 1, "out of memory")
	run(t, server, "check").want(t, 1, "out of memory")
	script := strings.Replace(section(t, "Redis is full"), "holdfast check\n", "! holdfast check || exit 9\n", 1) // this server persists nothing
	done{out: sh(t, script)}.want(t, 0, "maxmemory:1024", "CONFIG SET maxmemory-policy noeviction", "OK", "OK",
		"void", "persistence", "orders:42  mutex", "evicted_keys:", "DBSIZE", "redisson_lock_token:{orders:42}",
		"holdfast_once:{charge:order-7}", "MEMORY USAGE", "once forget", "HOLDFAST_OWNER=")
	redistest.Check(t, l.Release(t.Context()))
}
