// This file starts the Redis on which everything is measured.

package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of its own, without persistence.
type Server struct {
	Addr string

	binary string
	cmd    *exec.Cmd
	dir    string
	admin  *redis.Client
}

// StartServer starts a server on a free port of the loopback interface. The binary is redis-server,
// unless HOLDFAST_REDIS_SERVER names another.
func StartServer(ctx context.Context) (*Server, error) {
	binary := os.Getenv("HOLDFAST_REDIS_SERVER")
	if binary == "" {
		binary = "redis-server"
	}
	return StartBinary(ctx, binary)
}

// StartBinary starts that server on a free port of the loopback interface.
func StartBinary(ctx context.Context, binary string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: "127.0.0.1:" + port, dir: dir, binary: binary}
	s.admin = redis.NewClient(&redis.Options{Addr: s.Addr})
	if err := s.Start(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Start starts the server, empty, and returns once it answers. It is for a server that was killed.
func (s *Server) Start(ctx context.Context) error {
	_, port, _ := strings.Cut(s.Addr, ":")
	s.cmd = exec.Command(s.binary, "--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--maxclients", "20000")
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for s.admin.Ping(ctx).Err() != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", s.binary, ctx.Err())
		}
	}
	return nil
}

// Kill kills the server, and returns when it is gone.
func (s *Server) Kill() {
	if s.cmd.Process != nil {
		_ = s.cmd.Process.Kill() // an error means that it is gone already
		_ = s.cmd.Wait()
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// Stop ends the server and waits until it is gone.
func (s *Server) Stop() {
	s.admin.Close()
	s.Kill()
	os.RemoveAll(s.dir)
}

// Empty deletes all keys.
func (s *Server) Empty(ctx context.Context) error {
	return s.admin.FlushAll(ctx).Err()
}

// Version returns the name and the version of the server, such as "Valkey" and "9.1.2".
func (s *Server) Version(ctx context.Context) (name, version string, err error) {
	info, err := s.admin.Info(ctx, "server").Result()
	if v := field(info, "valkey_version"); v != "" {
		return "Valkey", v, err
	}
	return "Redis", field(info, "redis_version"), err
}

// Calls returns how often each command was called since that server began, by clients and by
// scripts.
func Calls(ctx context.Context, rdb *redis.Client) (map[string]float64, error) {
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, err
	}
	calls := make(map[string]float64)
	for line := range strings.Lines(info) {
		if name, stats, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls="); ok {
			count, _, _ := strings.Cut(stats, ",")
			calls[name], _ = strconv.ParseFloat(count, 64) // the server writes numbers
		}
	}
	return calls, nil
}

// Served is what the server has done since it began, or between two moments.
type Served struct {
	CPU      time.Duration // user and system
	Commands float64       // sent by clients; what scripts call is not among them
}

// Served returns what the server has done until now. Clients and scripts may send the same
// commands, and INFO does not tell which of them sent a command. Of these commands Served counts
// only the ones that sent names.
func (s *Server) Served(ctx context.Context, sent ...string) (Served, error) {
	used, err1 := s.admin.Info(ctx, "cpu").Result()
	stats, err2 := s.admin.Info(ctx, "commandstats").Result()
	if err := errors.Join(err1, err2); err != nil {
		return Served{}, err
	}
	return Served{CPU: serverCPU(used), Commands: commands(stats, sent)}, nil
}

// Since returns what the server did after then.
func (s Served) Since(then Served) Served {
	return Served{CPU: s.CPU - then.CPU, Commands: s.Commands - then.Commands}
}

func serverCPU(info string) time.Duration {
	user, _ := strconv.ParseFloat(field(info, "used_cpu_user"), 64)
	system, _ := strconv.ParseFloat(field(info, "used_cpu_sys"), 64)
	return time.Duration((user + system) * float64(time.Second))
}

// neverInScripts are the commands that only clients send.
var neverInScripts = []string{"eval", "evalsha", "ping", "script|load",
	"subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"}

func commands(info string, sent []string) (calls float64) {
	for _, name := range slices.Concat(neverInScripts, sent) {
		stats := field(info, "cmdstat_"+name)
		count, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n, _ := strconv.ParseFloat(count, 64) // "": nobody called the command
		calls += n
	}
	return calls
}

// field returns the value of a field in the reply to INFO, "" if the field is not there.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
