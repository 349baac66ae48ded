// A redis-server process that a test owns, and can kill, freeze and bring back.

package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// adminName is the client name of the harness's own connections.
const adminName = "redistest-admin"

// Proc is one server process. Its methods may be called from any goroutine, except Client,
// Admin, Restart and FlushScripts, which fail the test and so must be called on the test's own
// goroutine.
type Proc struct {
	t    testing.TB
	bin  string
	dir  string
	port int
	args []string

	mu    sync.Mutex
	proc  *process
	admin *redis.Client
}

// Server starts a server on a free loopback port, and returns when it answers PING. It persists
// nothing unless args say so: args are command line options ("--appendonly", "yes") that win
// over the defaults. The process is killed when t ends. [Needs] decides whether t runs at all.
func Server(t testing.TB, args ...string) *Proc {
	t.Helper()
	return startServer(t, false, withDefaults(args, "--save", "", "--appendonly", "no"))
}

// withDefaults appends each default pair whose option args do not set.
func withDefaults(args []string, defaults ...string) []string {
	out := slices.Clone(args)
	for pair := range slices.Chunk(defaults, 2) {
		if !slices.Contains(args, pair[0]) {
			out = append(out, pair...)
		}
	}
	return out
}

func startServer(t testing.TB, withBus bool, args []string) *Proc {
	t.Helper()
	bin := Needs(t)
	var err error
	for range 20 { // another process may take the port between the check and the start
		p := &Proc{t: t, bin: bin, dir: t.TempDir(), port: freePort(t, withBus), args: args}
		if err = p.launch(); err == nil {
			t.Cleanup(p.Kill)
			return p
		}
		if errors.Is(err, errSilent) {
			break // a server that runs has got its port
		}
	}
	t.Fatalf("redistest: cannot start %s: %v", bin, err)
	return nil
}

// errSilent says that a server runs but does not answer.
var errSilent = errors.New("it runs and does not answer")

// launch starts the process and waits until this process, and not another one on its port, answers.
// On failure nothing is left running.
func (p *Proc) launch() error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.bin, p.commandLine()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	proc, err := startProcess(cmd)
	if err != nil {
		return err
	}
	err = poll(patience, func() error {
		if !proc.alive() {
			return nil
		}
		return answers(p.Addr(), proc.pid())
	})
	switch {
	case err != nil && proc.alive():
		err = fmt.Errorf("%w: %w", errSilent, err)
	case !proc.alive():
		err = fmt.Errorf("it exited (%v)", proc.err)
	}
	if err != nil {
		proc.kill()
		return fmt.Errorf("%w; its log ends:\n%s", err, p.logTail())
	}
	p.mu.Lock()
	p.proc = proc
	p.mu.Unlock()
	return nil
}

// commandLine puts a configuration file first, if args begin with one, as the server requires.
func (p *Proc) commandLine() []string {
	var file []string
	rest := p.args
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
		file, rest = rest[:1], rest[1:]
	}
	own := []string{"--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--dir", p.dir, "--daemonize", "no"}
	return slices.Concat(file, own, rest)
}

// answers returns nil when the process pid serves addr and is not loading. A server that asks
// for a password counts as answering, but cannot report its pid.
func answers(addr string, pid int) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\n")); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	pong, err := readFrame(r, 0)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(pong.raw, []byte("-NOAUTH")) {
		return nil
	}
	if !bytes.HasPrefix(pong.raw, []byte("+PONG")) {
		return fmt.Errorf("PING answered %q", pong.raw)
	}
	info, err := readFrame(r, 0)
	if err != nil {
		return err
	}
	if !bytes.Contains(info.raw, fmt.Appendf(nil, "process_id:%d\r\n", pid)) {
		return fmt.Errorf("port of %s is served by another process than %d", addr, pid)
	}
	return nil
}

func (p *Proc) logPath() string { return filepath.Join(p.dir, "server.log") }

func (p *Proc) logTail() string {
	log, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

func (p *Proc) current() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc
}

// Addr returns the server's host:port, the same for all its life.
func (p *Proc) Addr() string { return loopback(p.port) }

// Running reports whether the server can answer: it is neither killed nor frozen.
func (p *Proc) Running() bool { return p.current().running() }

// Client returns a new client with go-redis's defaults, except that
// maintenance notifications are off, as changed by opts. t.Cleanup closes it.
func (p *Proc) Client(t testing.TB, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, &redis.Options{Addr: p.Addr()}, opts)
}

func newClient(t testing.TB, o *redis.Options, opts []func(*redis.Options)) *redis.Client {
	t.Helper()
	// Maintenance notifications would add a goroutine and a command per connection to every
	// test.
	o.MaintNotificationsConfig = quiet()
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// Admin returns the harness's own client for this server, for the test's
// inspection. Its connections are named, and [LeftBehind] does not count them.
// It never retries, so that a command runs at most once.
func (p *Proc) Admin() *redis.Client {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.admin == nil {
		p.admin = newClient(p.t, &redis.Options{
			Addr:                  p.Addr(),
			ClientName:            adminName,
			MaxRetries:            -1,
			DialerRetries:         1,
			ContextTimeoutEnabled: true,
		}, nil)
	}
	return p.admin
}

// Kill ends the server with SIGKILL, even a frozen one, and returns when it is gone. Killing a
// dead server does nothing.
func (p *Proc) Kill() {
	if err := p.current().kill(); err != nil {
		p.t.Errorf("redistest: kill %s: %v", p.Addr(), err)
	}
}

// Freeze stops the server with SIGSTOP, and returns when it has stopped: its connections stay
// open, the kernel goes on acknowledging, and nothing is answered.
func (p *Proc) Freeze() {
	if err := p.current().freeze(); err != nil {
		p.t.Errorf("redistest: freeze %s: %v", p.Addr(), err)
	}
}

// Thaw lets a frozen server go on.
func (p *Proc) Thaw() {
	if err := p.current().thaw(); err != nil {
		p.t.Errorf("redistest: thaw %s: %v", p.Addr(), err)
	}
}

// Restart kills the server if it lives, starts it again on the same port, and returns when it
// answers. With keepData it comes back with the data on its disk; a server that still answers
// and has no append-only file saves first. Without keepData it comes back empty. A cluster node
// keeps its identity either way.
func (p *Proc) Restart(keepData bool) {
	p.t.Helper()
	if keepData && p.Running() && !p.appendOnly() {
		p.mustDo("SAVE")
	}
	p.Kill()
	if !keepData {
		p.removeData()
	}
	if err := poll(patience, p.launch); err != nil {
		p.t.Fatalf("redistest: restart %s: %v", p.Addr(), err)
	}
}

func (p *Proc) removeData() {
	for _, name := range []string{"dump.rdb", "appendonly.aof", "appendonlydir"} {
		if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
			p.t.Errorf("redistest: remove the data of %s: %v", p.Addr(), err)
		}
	}
}

// asFollower makes a server replicate as a user of its own, so that its master can shut out that
// user and no other.
var asFollower = []string{"--masteruser", "follower", "--masterauth", "none", "--user", "follower", "on", "nopass", "~*", "&*", "+@all"}

// ShutOutFollowers cuts off the server's replicas until [Proc.LetInFollowers]: no write that the
// server takes meanwhile reaches any of them. It works for the nodes of [Sentinel].
func (p *Proc) ShutOutFollowers() {
	p.t.Helper()
	p.mustDo("ACL", "SETUSER", "follower", "off")
	p.mustDo("CLIENT", "KILL", "TYPE", "replica")
}

// LetInFollowers ends [Proc.ShutOutFollowers], which a restart ends too.
func (p *Proc) LetInFollowers() {
	p.t.Helper()
	p.mustDo("ACL", "SETUSER", "follower", "on")
}

func (p *Proc) mustDo(command ...any) {
	p.t.Helper()
	if err := p.Admin().Do(context.Background(), command...).Err(); err != nil {
		p.t.Fatalf("redistest: %v of %s: %v", command, p.Addr(), err)
	}
}

// Flush empties the server, which goes on running.
func (p *Proc) Flush() {
	p.t.Helper()
	p.mustDo("FLUSHALL")
}

// FlushScripts empties the script cache, so that the next EVALSHA of every script gets
// NOSCRIPT.
func (p *Proc) FlushScripts() {
	p.t.Helper()
	p.mustDo("SCRIPT", "FLUSH")
}

func (p *Proc) appendOnly() bool {
	i := slices.Index(p.args, "--appendonly")
	return i >= 0 && i+1 < len(p.args) && p.args[i+1] == "yes"
}
