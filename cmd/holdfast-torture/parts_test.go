package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReportsAreAddedUp(t *testing.T) {
	dir := t.TempDir()
	publish := func(r *report) {
		t.Helper()
		if err := r.publish(new(strings.Builder), dir); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err := os.RemoveAll(filepath.Join(dir, "torture-quorum-2.json")); err != nil {
			t.Fatal(err)
		}
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
