package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// deployment returns a Sentinel deployment and a client that has written k.
func deployment(t *testing.T) (*SentinelSet, *redis.Client) {
	t.Helper()
	s := Sentinel(t)
	c := s.Client(t)
	if err := c.Set(testContext(t), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestSentinelFailsOverByPlan(t *testing.T) {
	t.Parallel()
	s, _ := deployment(t)
	if n := len(s.Replicas()); n != 2 {
		t.Fatalf("%d replicas", n)
	}
	first := s.Master()
	second := s.Failover()
	if second == first || s.Master() != second {
		t.Fatal("a planned failover did not change the master")
	}
	wantValue(t, s.Master().Client(t), "k", "v")
	s.Settle()
}

func TestSentinelReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	s, c := deployment(t)
	first := s.Master()
	if killed := s.KillMaster(); killed != first {
		t.Error("killed another than the master")
	}
	second := s.Master()
	if second == first {
		t.Fatal("the killed master is still named")
	}
	Eventually(t, patience, "the client finds the new master", func() error {
		return c.Set(testContext(t), "k", "v2", 0).Err()
	})
	wantValue(t, second.Client(t), "k", "v2")
	first.Restart(true)
	s.Settle()
	if s.Master() != second {
		t.Fatal("the master changed by itself")
	}
}

func TestSentinelReplacesAFrozenMaster(t *testing.T) {
	t.Parallel()
	s, _ := deployment(t)
	first := s.Master()
	if frozen := s.FreezeMaster(); frozen != first {
		t.Error("froze another than the master")
	}
	if s.Master() == first {
		t.Fatal("the frozen master is still named")
	}
	first.Thaw()
	s.Settle()
}

// A failover forgets the writes that a master took while its replicas were shut out.
func TestReplicasThatAreShutOutMissWhatTheirMasterTakes(t *testing.T) {
	t.Parallel()
	s, c := deployment(t)
	first := s.Master()
	if n := c.Wait(testContext(t), 2, patience).Val(); n != 2 {
		t.Fatalf("%d replicas", n)
	}
	first.ShutOutFollowers()
	if err := first.Admin().Set(testContext(t), "k", "v2", 0).Err(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, s.Failover().Client(t), "k", "v")
	first.LetInFollowers()
	s.Settle()
	wantValue(t, s.Master().Client(t), "k", "v")
}
