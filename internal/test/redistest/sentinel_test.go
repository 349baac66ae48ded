package redistest

import "testing"

// A failover forgets the writes that a master took while its replicas were shut out. The ways in which
// a master fails are tested where locks live through them.
func TestReplicasThatAreShutOutMissWhatTheirMasterTakes(t *testing.T) {
	t.Parallel()
	s := Sentinel(t)
	c := s.Client(t)
	Must(t, c.Set(testContext(t), "k", "v", 0).Err())
	first := s.Master()
	InSync(t, first, 2)
	first.ShutOutFollowers()
	Must(t, first.Admin().Set(testContext(t), "k", "v2", 0).Err())
	second := s.Failover()
	if second == first || s.Master() != second || len(s.Replicas()) != 2 {
		t.Fatal("a planned failover did not change the master")
	}
	wantValue(t, second.Client(t), "k", "v")
	first.LetInFollowers()
	s.Settle()
	wantValue(t, s.Master().Client(t), "k", "v")
}
