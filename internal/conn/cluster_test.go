// Callers find a key whose slot moves, and the owner of their Manager hears of it.

package conn_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// lateAsk is a connection that holds back what the client sends after a redirection by ASK.
type lateAsk struct {
	net.Conn
	held chan<- struct{} // hears when a write is held back
	pass <-chan struct{}
}

func (c lateAsk) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("asking")) {
		select {
		case c.held <- struct{}{}:
		default: // only of the first
		}
		<-c.pass
	}
	return c.Conn.Write(b)
}

// A node that is about to receive a slot says that a key is missing if the key has already moved on
// or has not arrived yet. A redirection to that node may be so old that the key is elsewhere by
// now.
func TestARedirectionThatIsOutOfDateIsNotBelieved(t *testing.T) {
	c := redistest.Cluster(t, 3, 0)
	const key = "{late}there"
	held, pass := make(chan struct{}, 1), make(chan struct{})
	m := newManager(t, c.Client(t, func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return lateAsk{conn, held, pass}, err
		}
	}))
	mustRun(t, m, newCount(key))
	for i := range 30 { // so that all masters have the script
		mustRun(t, m, &conn.Call{Script: exists, Keys: []string{fmt.Sprint("late", i)}})
	}
	call := &conn.Call{Script: exists, Keys: []string{key}}
	first := c.OpenSlot(key)
	first.MoveKeys(key)
	late := start(m, call)
	<-held
	for to := first.Finish(); to != first.From; {
		to = c.OpenSlot(key).Finish()
	}
	second := c.OpenSlot(key) // to the same server, with the key still where it was
	close(pass)
	if err := late.wait(t, time.Minute); err != nil || call.Status() != 1 || second.To != first.To {
		t.Errorf("%v, reply %v in %d attempts, of a key that is there", err, call.Reply, call.Attempts)
	}
	second.Finish()
}

// The owner of a Manager hears that the keys of a slot are at another server, when a server says that it has moved.
func TestKeysOfASlotThatHasMovedAreDoubted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var doubted []string
		b.onCluster(t, func(d conn.Doubt) {
			for _, key := range []string{"k", "{k}2", "other"} {
				if d.Concerns(key) {
					doubted = append(doubted, key)
				}
			}
		})
		mustRun(t, b.Manager, newCount("k"))
		doubted = nil // by the first connections
		b.proxy.OnCommand(firstScripts(1, redistest.ReplyError("MOVED 12706 127.0.0.1:6379")))
		mustRun(t, b.Manager, newCount("k"))
		time.Sleep(time.Second) // go-redis may still be about to reload the table
		if want := []string{"k", "{k}2"}; !slices.Equal(doubted, want) {
			t.Errorf("doubted %v, want %v", doubted, want)
		}
	})
}

func TestAClusterWithoutSlotsSaysSo(t *testing.T) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{redistest.Server(t, "--cluster-enabled", "yes").Addr()}})
	defer rdb.Close()
	err := runFor(2*time.Second, newManager(t, rdb), newCount("k"))
	mustMatch(t, err, context.DeadlineExceeded)
	mustMatch(t, err, errs.Unavailable)
	if text := fmt.Sprint(err); !strings.Contains(text, "last failure") || !strings.Contains(text, "CLUSTERDOWN") {
		t.Errorf("%v does not say why", err)
	}
}
