// The topologies and grounds of which one runs for a change: with HOLDFAST_TURN=n it is the turn of the n-th,
// counted around. A standalone server and a cluster run for each change, and one of the two embedded servers. Without HOLDFAST_TURN, and in the long
// run, all of them run.

package conformance

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// turns has their tests, without the beginning of the names.
func turns() []string {
	all := []string{"Standalone/RESP2", "Replicated", "Sentinel", "Cluster/ReadOnly", "Cluster/RouteByLatency", "FewRights"}
	for _, ground := range conformanceGrounds {
		all = append(all, "Grounds/"+strings.ReplaceAll(ground.name, " ", "_"))
	}
	return all
}

// embedded are the tests on an embedded server. They take turns among themselves.
var embedded = []string{"Embedded", "StrictScripts"}

// turn skips t, one of those that take turns, unless it is its turn.
func turn(t *testing.T, all []string) {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("HOLDFAST_TURN"), 10, 32)
	if err != nil || os.Getenv("HOLDFAST_LONG") != "" {
		return
	}
	i, mine := slices.Index(all, strings.TrimPrefix(t.Name(), "TestConformance_")), n%uint64(len(all))
	switch {
	case i < 0:
		t.Fatalf("it is not among those that take turns: %q", all)
	case uint64(i) != mine:
		t.Skipf("with HOLDFAST_TURN=%d it is the turn of %s", n, all[mine])
	}
	t.Logf("with HOLDFAST_TURN=%d it is its turn", n)
}
