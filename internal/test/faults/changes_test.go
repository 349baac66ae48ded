// A cluster changes under each kind as operators change it, and nothing is lost.

package faults

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Before operations of each kind's life its slot moves, key by key, or its master fails over as planned. All counts,
// verdicts and tokens stay right. A barrier has no part in it: its life needs to see what is sent.
func TestLivesGoOnWhileAClusterChanges(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 3, 1)
	operations, moved, failed := 0, 0, 0
	for kind, life := range lives() {
		if kind == "barrier" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			u := &unlucky{direct: cluster.Client(t), t: t, ctx: t.Context(), lease: 30 * time.Second, scripts: world.ScriptNames(t)}
			u.Client, u.onlooker = clienttest.OpenClient(t, cluster.Client(t)), clienttest.OpenClient(t, cluster.Client(t))
			slotOf := kind
			if kind == "once" {
				slotOf += ":k" // the name of its record
			}
			u.live(kind, life, func() (mishap, int) {
				switch operations++; {
				case operations%15 == 8:
					failed++
					cluster.Failover(slotOf)
				case operations%3 == 0:
					moved++
					cluster.MoveSlot(slotOf)
				}
				return mishap{}, 0
			})
		})
	}
	clienttest.Figure(t, "%d slot moves and %d failovers in %d operations: all counts, verdicts and tokens right", moved, failed, operations)
}
