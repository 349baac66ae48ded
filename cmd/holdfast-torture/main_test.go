// The torture is started with what it needs, takes turns, and notices a calm.

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m, contender()) }

func TestTheCommandLine(t *testing.T) {
	c, err := parse([]string{"-topology", "cluster", "-kinds", "mutex,rw", "-faults", "none", "-seed", "7"})
	redistest.Must(t, err)
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
	redistest.Equal(t, len(n.armed), 0, "%d are still armed")
}

func TestEveryClassCanBeInjected(t *testing.T) {
	n := &network{t: t}
	r := newRand(1, "wire")
	for _, class := range slices.Concat(wireClasses, subscriptionClasses, waitClasses) {
		n.fault(class, r) // panics if it does not know the class
	}
	n.timers.Wait()
}

func TestReportsAreAddedUp(t *testing.T) {
	dir := t.TempDir()
	publish := func(r *report) {
		t.Helper()
		redistest.Must(t, r.publish(new(strings.Builder), dir))
	}
	publish(&report{
		Topology: "quorum", Ground: "plain: TCP", Seed: 1, Commit: "abc", Took: duration(90 * time.Second), Grants: 10, Faults: 2,
		Kinds:    map[string]*kindReport{"quorum": {Grants: 10, WorstWait: duration(1500 * time.Microsecond)}},
		Endings:  map[string]int{lost: 1},
		Recovery: duration(-time.Second),
	})
	publish(&report{
		Topology: "quorum", Ground: "plain: TCP", Seed: 2, Commit: "def", Took: duration(time.Minute), Grants: 5, Faults: 3,
		Kinds:      map[string]*kindReport{"quorum": {Grants: 4}, "quorumrw": {Grants: 1}},
		Endings:    map[string]int{lost: 2, released: 1},
		Overlaps:   1,
		Violations: []string{"overlap"},
	})
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	sum, err := addUp(files)
	redistest.Must(t, err)
	if sum.Grants != 15 || sum.Faults != 5 || sum.Overlaps != 1 || sum.Took != duration(150*time.Second) || len(sum.Violations) != 1 {
		t.Errorf("%+v", sum)
	}
	if k := sum.Kinds["quorum"]; k.Grants != 14 || k.WorstWait != duration(1500*time.Microsecond) || sum.Kinds["quorumrw"].Grants != 1 {
		t.Errorf("%+v", k)
	}
	if sum.Endings[lost] != 3 || sum.Endings[released] != 1 || len(sum.Parts) != 2 || sum.Commit != "abc; def" {
		t.Errorf("%+v", sum)
	}
	for name, other := range map[string]*report{
		"a sum":            sum,
		"another topology": {Topology: "single", Ground: "plain: TCP", Seed: 3},
	} {
		redistest.Must(t, os.RemoveAll(filepath.Join(dir, "torture-quorum-2.json")))
		publish(other)
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		if _, err := addUp(files); err == nil {
			t.Errorf("%s was added", name)
		}
	}
	if _, err := addUp(nil); err == nil {
		t.Error("nothing was added up")
	}
}
