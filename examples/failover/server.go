// This file starts redis-server processes that the example can kill.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server process on this machine. It keeps nothing on disk.
type server struct {
	rdb  *redis.Client
	port string
	dir  string
	cmd  *exec.Cmd
}

// startServers starts n servers.
func startServers(ctx context.Context, n int) (servers []*server, err error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("this example needs redis-server, of Redis or Valkey: %w", err)
	}
	for range n {
		s, err := startServer(ctx)
		if err != nil {
			stopAll(servers...)
			return nil, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// startPair starts a master and its replica, and waits until the replica is in step.
func startPair(ctx context.Context) (master, replica *server, err error) {
	servers, err := startServers(ctx, 2)
	if err != nil {
		return nil, nil, err
	}
	master, replica = servers[0], servers[1]
	if err = replica.rdb.ReplicaOf(ctx, "127.0.0.1", master.port).Err(); err == nil {
		err = eventually(ctx, func() error {
			n, err := master.rdb.Wait(ctx, 1, 100*time.Millisecond).Result()
			if err == nil && n == 0 {
				err = errors.New("the replica is not in step with its master")
			}
			return err
		})
	}
	if err != nil {
		stopAll(servers...)
		return nil, nil, err
	}
	return master, replica, nil
}

func startServer(ctx context.Context) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-failover-")
	if err != nil {
		return nil, err
	}
	s := &server{port: port, dir: dir, rdb: redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})}
	if err := s.launch(ctx); err != nil {
		stopAll(s)
		return nil, err
	}
	return s, nil
}

// launch starts the process and waits until it answers.
func (s *server) launch(ctx context.Context) error {
	s.cmd = exec.Command("redis-server", "--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return eventually(ctx, func() error { return s.rdb.Ping(ctx).Err() })
}

// cutOff ends the replication to this server by making it follow a master that does not exist.
func (s *server) cutOff(ctx context.Context) error {
	return s.rdb.ReplicaOf(ctx, "127.0.0.1", "1").Err()
}

// failOver kills the master and makes the replica take over.
func failOver(ctx context.Context, master, replica *server) error {
	master.kill()
	return replica.rdb.ReplicaOf(ctx, "NO", "ONE").Err()
}

// replace kills the server and starts an empty one in its place.
func (s *server) replace(ctx context.Context) error {
	s.kill()
	return s.launch(ctx)
}

func (s *server) kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func stopAll(servers ...*server) {
	for _, s := range servers {
		_ = s.rdb.Close()
		s.kill()
		_ = os.RemoveAll(s.dir)
	}
}

// eventually calls ask until it returns no error, for at most half a minute.
func eventually(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ask()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
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
