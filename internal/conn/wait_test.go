// A call sends WAIT with a time limit, and reports why the server refused it.

package conn_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestWaitHasAnEndHoweverShortTheReadTimeoutIs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var asked atomic.Value
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "WAIT" {
				asked.Store(strings.Join(c.Args, " "))
			}
			return redistest.Pass
		})
		mustRun(t, b.Manager, &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1})
		synctest.Wait()
		if got := asked.Load(); got != "1 1" {
			t.Errorf("WAIT %q, want 1 replica and 1 ms", got)
		}
	}, func(o *redis.Options) { o.ReadTimeout = time.Millisecond })
}

// A server that does not say how many replicas have a call leaves it short of them. If it refuses to say, that
// is told. A failover during WAIT is no refusal.
func TestAWaitThatFailsIsAShortageOfReplicas(t *testing.T) {
	for fault, want := range map[redistest.Fault]error{
		redistest.ReplyError("NOPERM User u has no permissions to run the 'wait' command"):                                   errs.Denied,
		redistest.ReplyError("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"): errs.NotReplicated,
		redistest.ReplyNumber(0): errs.NotReplicated,
		redistest.ReplyNumber(1): nil,
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			b.proxy.OnCommand(onCommands(fault, "WAIT"))
			c := &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1}
			mustRun(t, b.Manager, c)
			if c.Short() != (want != nil) {
				t.Errorf("short of replicas: %v, want %v", c.Short(), want)
			}
			if want != nil {
				mustMatch(t, c.Shortage(), want)
			}
		})
	}
}
