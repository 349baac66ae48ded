// A Sentinel deployment of plain processes: a master, two replicas and three
// sentinels that agree on who is master.

package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name under which the sentinels know the master.
const MasterName = "holdfast"

// SentinelSet is one master, two replicas and three sentinels. Its methods fail the test, and
// so must be called on the test's own goroutine.
type SentinelSet struct {
	t         testing.TB
	nodes     []*Proc
	sentinels []*Proc
}

// Sentinel starts the deployment and returns when both replicas are in sync
// and the sentinels know each other, about 2 s. A master that does not answer
// for 1.5 s counts as down, and is replaced about 1.5 s later. args are options
// of the three data nodes.
func Sentinel(t testing.TB, args ...string) *SentinelSet {
	t.Helper()
	s := &SentinelSet{t: t}
	args = withDefaults(args, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
	args = append(args, asFollower...)
	master := startServer(t, false, args)
	s.nodes = []*Proc{master}
	for range 2 {
		replica := append([]string{"--replicaof", "127.0.0.1", fmt.Sprint(master.port)}, args...)
		s.nodes = append(s.nodes, startServer(t, false, replica))
	}
	// A sentinel looks for replicas at once, and after that only every 10 s, so the replicas are in
	// sync before the sentinels start.
	Eventually(t, patience, "replicas in sync", func() error { return s.replicated(master) })
	for range 3 {
		s.sentinels = append(s.sentinels, s.startSentinel(master))
	}
	Eventually(t, patience, "sentinels know each other", s.acquainted)
	return s
}

func (s *SentinelSet) startSentinel(master *Proc) *Proc {
	s.t.Helper()
	conf := filepath.Join(s.t.TempDir(), "sentinel.conf")
	// A promotion closes the sentinels' own connections, and they reconnect at most once a second.
	// With a shorter down-after, the new master would then count as down at once, and one failover
	// would set off the next, again and again.
	text := fmt.Sprintf(`sentinel monitor %[1]s 127.0.0.1 %[2]d 2
sentinel down-after-milliseconds %[1]s 1500
sentinel failover-timeout %[1]s 3000
sentinel parallel-syncs %[1]s 2
`, MasterName, master.port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	return startServer(s.t, false, []string{conf, "--sentinel"})
}

// replicated returns nil when every other running node follows master and is in sync.
func (s *SentinelSet) replicated(master *Proc) error {
	info, err := infoOf(master, "replication")
	if err != nil {
		return err
	}
	want := 0
	for _, node := range s.nodes {
		if node != master && node.Running() {
			want++
		}
	}
	if got := strings.Count(info, "state=online"); got != want || !strings.Contains(info, "role:master") {
		return fmt.Errorf("%s has %d of %d replicas in sync", master.Addr(), got, want)
	}
	return nil
}

func infoOf(p *Proc, section string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return p.Admin().Info(ctx, section).Result()
}

func (s *SentinelSet) acquainted() error {
	for _, sentinel := range s.sentinels {
		m, err := s.view(sentinel)
		if err != nil {
			return err
		}
		if m["flags"] != "master" || m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" {
			return fmt.Errorf("%s sees a %s with %s replicas and %s other sentinels",
				sentinel.Addr(), m["flags"], m["num-slaves"], m["num-other-sentinels"])
		}
	}
	return nil
}

// ask runs f with a short-lived client of one sentinel.
func ask[T any](sentinel *Proc, f func(context.Context, *redis.SentinelClient) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c := redis.NewSentinelClient(&redis.Options{
		Addr:                     sentinel.Addr(),
		MaxRetries:               -1,
		DialerRetries:            1,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: quiet(),
	})
	defer c.Close()
	return f(ctx, c)
}

// view returns what a sentinel reports about the master.
func (s *SentinelSet) view(sentinel *Proc) (map[string]string, error) {
	return ask(sentinel, func(ctx context.Context, c *redis.SentinelClient) (map[string]string, error) {
		return c.Master(ctx, MasterName).Result()
	})
}

// Client returns a failover client of the deployment, as [Proc.Client].
func (s *SentinelSet) Client(t testing.TB, opts ...func(*redis.FailoverOptions)) *redis.Client {
	t.Helper()
	o := &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: s.SentinelAddrs()}
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// SentinelAddrs returns the sentinels' addresses.
func (s *SentinelSet) SentinelAddrs() []string {
	var addrs []string
	for _, sentinel := range s.sentinels {
		addrs = append(addrs, sentinel.Addr())
	}
	return addrs
}

// Master returns the node that all sentinels name, if it runs and reports itself that it is the
// master. It waits for a failover under way to end.
func (s *SentinelSet) Master() *Proc {
	s.t.Helper()
	var master *Proc
	Eventually(s.t, patience, "the sentinels agree on a running master", func() (err error) {
		master, err = s.agreed()
		return err
	})
	return master
}

func (s *SentinelSet) agreed() (*Proc, error) {
	named := map[string]bool{}
	for _, sentinel := range s.sentinels {
		m, err := s.view(sentinel)
		if err != nil {
			return nil, err
		}
		named[m["port"]] = true
	}
	for _, node := range s.nodes {
		if len(named) != 1 || !named[fmt.Sprint(node.port)] {
			continue
		}
		if !node.Running() {
			return nil, fmt.Errorf("the master %s does not run", node.Addr())
		}
		info, err := infoOf(node, "replication")
		if err == nil && !strings.Contains(info, "role:master") {
			err = fmt.Errorf("%s is not a master yet", node.Addr())
		}
		return node, err
	}
	return nil, fmt.Errorf("the sentinels name the ports %v", named)
}

// Nodes returns the master and the replicas, running or not.
func (s *SentinelSet) Nodes() []*Proc { return slices.Clone(s.nodes) }

// Replicas returns the nodes that are not the master, running or not.
func (s *SentinelSet) Replicas() []*Proc {
	s.t.Helper()
	master := s.Master()
	var replicas []*Proc
	for _, node := range s.nodes {
		if node != master {
			replicas = append(replicas, node)
		}
	}
	return replicas
}

// Failover makes a replica the master, as a planned failover, and returns it when all sentinels
// name it. The old master is demoted some 10 s later, see [SentinelSet.Settle].
func (s *SentinelSet) Failover() *Proc {
	s.t.Helper()
	old := s.Master()
	var master *Proc
	Eventually(s.t, 2*patience, "planned failover", func() error {
		_, err := ask(s.sentinels[0], func(ctx context.Context, c *redis.SentinelClient) (string, error) {
			return c.Failover(ctx, MasterName).Result()
		})
		// The sentinel refuses while another failover is under way, which may be this one.
		return poll(20*time.Second, func() error {
			now, agreeErr := s.agreed()
			switch {
			case agreeErr != nil:
				return agreeErr
			case now == old:
				return fmt.Errorf("%s is still master (SENTINEL FAILOVER: %v)", old.Addr(), err)
			}
			master = now
			return nil
		})
	})
	return master
}

// Settle waits until all running nodes follow the master and are in sync. The
// sentinels take about 10 s to turn an old master that is back into a replica.
func (s *SentinelSet) Settle() {
	s.t.Helper()
	Eventually(s.t, patience, "all nodes follow the master", func() error {
		master, err := s.agreed()
		if err != nil {
			return err
		}
		return s.replicated(master)
	})
}

// KillMaster kills the master with SIGKILL and returns it. [SentinelSet.Master]
// then waits for its successor.
func (s *SentinelSet) KillMaster() *Proc {
	s.t.Helper()
	old := s.Master()
	old.Kill()
	return old
}

// FreezeMaster stops the master with SIGSTOP and returns it. If it is thawed after the
// failover, it takes itself for the master until the sentinels demote it.
func (s *SentinelSet) FreezeMaster() *Proc {
	s.t.Helper()
	old := s.Master()
	old.Freeze()
	return old
}
