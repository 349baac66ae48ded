// Elections: one process leads and another waits, and the workload measures how soon the other leads when
// the first resigns.

package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// ElectionResigned is the name of the workload, and ElectionKilled that of its neighbour in killed.go.
const (
	ElectionResigned = "election/resigned"
	ElectionKilled   = "election/killed"
)

// The processes of elections: candidates, and the process in which etcd's server runs where etcd takes part.
const (
	electionProcesses = 3
	etcdProcess       = 2
)

// electionWait is how long a candidate waits at least. A watch of etcd's that begins at the present revision may be
// told up to 100 ms late of what comes soon after.
const electionWait = 150 * time.Millisecond

var electionContenders = []string{peer.Holdfast, peer.Etcd, peer.RedsyncElection}

func elections() []Workload {
	return []Workload{{
		Name:       ElectionResigned,
		Title:      "election: from the end of the leader's work until the candidate in another process leads",
		Processes:  electionProcesses,
		Contenders: electionContenders,
		Latency:    true,
		Window:     Window{Full: 3 * time.Second, Quick: 3 * time.Second},
		Run: func(ctx context.Context, s *Site) error {
			if s.Process == etcdProcess {
				return serveEtcd(ctx, s)
			}
			p, err := s.openElections(ctx)
			if err != nil {
				return err
			}
			defer p.Close()
			return s.handOver(ctx, p.Lock(s.Name), electionWait)
		},
	}, killed()}
}

// serveEtcd is the process in which etcd's server runs. What it uses is not the candidates'.
func serveEtcd(ctx context.Context, s *Site) error {
	s.Meter.Bystander()
	if s.Contender == peer.Etcd {
		addr, stop, err := peer.StartEtcd(ctx, filepath.Join(s.Dir, "etcd"))
		if err != nil {
			return err
		}
		defer stop()
		written := s.etcdAddress() + ".written"
		if err := os.WriteFile(written, []byte(addr), 0o600); err != nil {
			return err
		}
		if err := os.Rename(written, s.etcdAddress()); err != nil {
			return err
		}
	}
	s.Ready()
	<-ctx.Done()
	return nil
}

func (s *Site) etcdAddress() string { return filepath.Join(s.Dir, "address") }

// openElections opens the contender's elections, which are on etcd's server if it is etcd. What they do
// ends with ctx.
func (s *Site) openElections(ctx context.Context) (peer.Process, error) {
	addr, err := s.electionServer(ctx)
	if err != nil {
		return nil, err
	}
	return openElections(ctx, s.Contender, addr)
}

func openElections(ctx context.Context, contender, addr string) (peer.Process, error) {
	p, err := peer.Find(contender)
	if err != nil {
		return nil, err
	}
	if p.Elect == nil {
		return nil, fmt.Errorf("%s has no elections", contender)
	}
	return p.Elect(ctx, addr)
}

// electionServer returns the address of the server of the contender's elections, once it is there.
func (s *Site) electionServer(ctx context.Context) (string, error) {
	if s.Contender != peer.Etcd {
		return s.Addr, nil
	}
	for {
		if addr, err := os.ReadFile(s.etcdAddress()); err == nil {
			return string(addr), nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(10 * time.Millisecond): // the other process has not started it yet
		}
	}
}
