// A call sends WAIT with a time limit, and reports why the server refused it.

package conn_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestWaitHasAnEndHoweverShortTheReadTimeoutIs(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	inBubble(t, func(t *testing.T, b *bubble) {
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "WAIT" {
				mu.Lock()
				defer mu.Unlock()
				asked = slices.Clone(c.Args)
			}
			return redistest.Pass
		})
		mustRun(t, b.Manager, &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1})
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) < 2 || asked[len(asked)-1] != "1" || asked[len(asked)-2] != "1" {
			t.Errorf("WAIT %q, want 1 replica and 1 ms", asked)
		}
	}, func(o *redis.Options) { o.ReadTimeout = time.Millisecond })
}

func TestARefusalOfWaitIsToldAsDenied(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.proxy.OnCommand(onCommands(redistest.ReplyError("NOPERM User u has no permissions to run the 'wait' command"), "WAIT"))
		c := &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1}
		mustRun(t, b.Manager, c)
		if !c.Short() {
			t.Error("is not short of replicas")
		}
		mustMatch(t, c.Shortage(), errs.Denied)
	})
}

// A failover during WAIT is reported to callers as a shortage of replicas, not as a failover.
func TestAMasterThatCannotTellIsAShortageOfReplicas(t *testing.T) {
	const unblocked = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
	inBubble(t, func(t *testing.T, b *bubble) {
		b.proxy.OnCommand(onCommands(redistest.ReplyError(unblocked), "WAIT"))
		c := &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1}
		mustRun(t, b.Manager, c)
		if !c.Short() {
			t.Error("is not short of replicas")
		}
		mustMatch(t, c.Shortage(), errs.NotReplicated)
	})
}
