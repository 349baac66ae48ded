package main

import (
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m, contender()) }

func TestTheCommandLine(t *testing.T) {
	c, err := parse([]string{"-topology", "cluster", "-kinds", "mutex,rw", "-faults", "none", "-seed", "7"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Seed != 7 || c.Replicas != 1 || len(c.Faults) != 0 || !slices.Equal(c.Kinds, []string{"mutex", "rw"}) {
		t.Errorf("%+v", c)
	}
	if c, _ := parse([]string{"-topology", "sentinel"}); c.Replicas != 2 {
		t.Errorf("%d replicas by default, want all", c.Replicas)
	}
	for _, args := range [][]string{
		{"-topology", "ring"},
		{"-topology", "quorum", "-ground", "routing"},
		{"-ground", "sand"},
		{"-topology", "quorum", "-kinds", "mutex"},
		{"-topology", "single", "-faults", "slot moved"},
		{"-processes", "1"},
		{"-width", "0"},
		{"-pauses", "0"},
	} {
		if c, err := parse(args); err == nil {
			t.Errorf("%v is taken for %+v", args, c)
		}
	}
}

func TestASeedIsDrawn(t *testing.T) {
	a, _ := parse(nil)
	b, _ := parse(nil)
	if a.Seed == 0 || a.Seed == b.Seed {
		t.Errorf("seeds %d and %d", a.Seed, b.Seed)
	}
}

func TestTheSameSeedDrawsTheSameNumbers(t *testing.T) {
	draw := func(seed uint64) []int {
		r := newRand(seed, "wire")
		var all []int
		for range 100 {
			all = append(all, r.IntN(1000))
		}
		return all
	}
	if !slices.Equal(draw(1), draw(1)) || slices.Equal(draw(1), draw(2)) {
		t.Error("the numbers do not follow from the seed")
	}
}

func TestEachTopologyKnowsWhatItsFaultsLose(t *testing.T) {
	for _, topology := range []string{"single", "sentinel", "cluster", "quorum"} {
		if len(kindsOf(topology)) == 0 || len(classesOf(topology)) == 0 {
			t.Errorf("%s has no kinds or no faults", topology)
		}
		for _, kind := range kindsOf(topology) {
			if _, ok := rules[kind]; !ok {
				t.Errorf("%s has no rule", kind)
			}
		}
	}
}

func TestEachFaultOfTheWireMeetsItsOwnCommand(t *testing.T) {
	n := &network{t: t}
	r := newRand(1, "wire")
	met := map[string]int{}
	for _, class := range []string{"subscription lost", "confirmation lost", "request twice", "request twice"} {
		n.arm(class, r, func() { met[class]++ })
	}
	for _, name := range []string{"PING", "WAIT", "SSUBSCRIBE", "EVALSHA", "EVALSHA", "WAIT"} {
		n.meet(redistest.Command{Name: name})
	}
	for _, class := range []string{"subscription lost", "confirmation lost", "request twice"} {
		if met[class] != 1 {
			t.Errorf("%q met %d commands, want 1", class, met[class])
		}
	}
	if len(n.armed) != 0 {
		t.Errorf("%d are still armed", len(n.armed))
	}
}

func TestEveryClassCanBeInjected(t *testing.T) {
	n := &network{t: t}
	r := newRand(1, "wire")
	for _, class := range slices.Concat(wireClasses, subscriptionClasses, waitClasses) {
		n.fault(class, r) // panics if it does not know the class
	}
	n.timers.Wait()
}

func TestAResolverFailsForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{}
		if err := r.lookup("a"); err != nil {
			t.Error(err)
		}
		r.fail(time.Second)
		var failed *net.DNSError
		if err := r.lookup("a"); !errors.As(err, &failed) {
			t.Errorf("err = %v", err)
		}
		time.Sleep(time.Second)
		if err := r.lookup("a"); err != nil {
			t.Error(err)
		}
	})
}
