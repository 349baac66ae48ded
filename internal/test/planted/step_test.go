// Tests run in steps. A bug is caught in one of them, the sooner the better.

package planted

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// step is what runs a test. See docs/testing.md.
type step int

const (
	virtual step = iota // go test: virtual time, no server
	servers             // HOLDFAST_SERVERS=1: real servers, no bound in real time
	long                // and HOLDFAST_LONG: bounds in real time
)

func (s step) String() string { return []string{"virtual", "servers", "long"}[s] }

// environment returns the variables that run the tests of the step. A tenth of each count is enough.
func (s step) environment() []string {
	return [][]string{
		{"HOLDFAST_SERVERS=", "HOLDFAST_LONG="},
		{"HOLDFAST_SERVERS=1", "HOLDFAST_LONG="},
		{"HOLDFAST_SERVERS=1", "HOLDFAST_LONG=bounds"},
	}[s]
}

// How many bugs each step catches, by package: go test -v -run TestBugsByStep ./internal/test/planted
func TestBugsByStep(t *testing.T) {
	all := make(map[step]int)
	by := make(map[step]map[string]int)
	for _, b := range bugs {
		if by[b.step] == nil {
			by[b.step] = make(map[string]int)
		}
		all[b.step]++
		by[b.step][b.pkg()]++
	}
	for _, s := range slices.Sorted(maps.Keys(by)) {
		var each []string
		for _, pkg := range slices.Sorted(maps.Keys(by[s])) {
			each = append(each, fmt.Sprintf("%s %d", pkg, by[s][pkg]))
		}
		t.Logf("%-7s %3d: %s", s, all[s], strings.Join(each, ", "))
	}
}
