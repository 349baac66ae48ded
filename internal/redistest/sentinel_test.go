package redistest

import "testing"

func TestSentinelFailsOver(t *testing.T) {
	s := Sentinel(t)
	c := s.Client(t)
	ctx := testContext(t)
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
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

	if killed := s.KillMaster(); killed != second {
		t.Error("killed another than the master")
	}
	third := s.Master()
	if third == second {
		t.Fatal("the killed master is still named")
	}
	Eventually(t, patience, "the client finds the new master", func() error {
		return c.Set(ctx, "k", "v2", 0).Err()
	})
	wantValue(t, third.Client(t), "k", "v2")

	second.Restart(true)
	s.Settle()
	if s.Master() != third {
		t.Fatal("the master changed by itself")
	}
	if frozen := s.FreezeMaster(); frozen != third {
		t.Error("froze another than the master")
	}
	if s.Master() == third {
		t.Fatal("the frozen master is still named")
	}
	third.Thaw()
	s.Settle()
}
