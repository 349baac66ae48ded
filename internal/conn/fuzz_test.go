// A reply of arbitrary bytes leads to an error that says so. It never leads to a panic, or to an
// answer that no script has given.

package conn_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// parrotAddr has a number for its host: go-redis would look up a name.
const parrotAddr = "127.0.0.1:1"

// parrot is a server that answers every script with the same bytes and then closes the connection.
// The only other command that it knows is TIME.
type parrot struct {
	reply   []byte
	serving sync.WaitGroup
}

func (p *parrot) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.serving.Go(func() {
		defer server.Close()
		p.serve(server)
	})
	return client, nil
}

func (p *parrot) serve(server net.Conn) {
	lines := bufio.NewScanner(server)
	for lines.Scan() {
		words := 0
		_, _ = fmt.Sscanf(lines.Text(), "*%d", &words)
		lines.Scan() // the length of the name
		lines.Scan()
		reply := []byte("-ERR unknown command\r\n")
		switch name := lines.Text(); name {
		case "eval", "evalsha":
			_, _ = server.Write(p.reply)
			return
		case "time":
			reply = []byte("*2\r\n$1\r\n1\r\n$1\r\n0\r\n")
		}
		for range 2 * (words - 1) {
			lines.Scan()
		}
		if _, err := server.Write(reply); err != nil {
			return
		}
	}
}

var announcesMuch = regexp.MustCompile(`[^:0-9-][0-9]{6}|[^:]-[0-9]{6}`)

func FuzzReplies(f *testing.F) {
	for _, reply := range []string{
		"*4\r\n:1\r\n:1700000000000000\r\n:30000\r\n:1700000000000000\r\n", "*3\r\n:0\r\n:1700000000000000\r\n:-1\r\n",
		"*2\r\n:-1\r\n:1700000000000000\r\n", "*2\r\n:1\r\n:-5\r\n", "*1\r\n:1\r\n", "*0\r\n", "*-1\r\n", "$-1\r\n", "_\r\n",
		":1\r\n", "+OK\r\n", "*2\r\n$1\r\n1\r\n:1\r\n", "*2\r\n:1\r\n$1\r\n1\r\n", "*2\r\n*1\r\n:1\r\n:1\r\n",
		"%1\r\n:1\r\n:2\r\n", "~2\r\n:1\r\n:2\r\n", ">2\r\n+message\r\n:2\r\n", "*3\r\n:1\r\n:17000000", "$99999\r\n1\r\n",
		"-ERR no\r\n", "-NOSCRIPT no\r\n", "-MOVED 1 \r\n", "-MOVED\r\n", "-ASK 1 :1\r\n", "-LOADING yes\r\n", "-\r\n", "\r\n", "",
	} {
		f.Add([]byte(reply))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		if len(reply) > 4096 || announcesMuch.Match(reply) {
			t.Skip("go-redis makes room for whatever is announced")
		}
		server := &parrot{reply: reply}
		defer server.serving.Wait()
		rdb := redis.NewClient(&redis.Options{Addr: parrotAddr, Dialer: server.dial, Protocol: 2})
		defer rdb.Close()
		m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
		redistest.Must(t, err)
		defer m.Close()
		ctx := redistest.Within(t, 100*time.Millisecond)
		call := newCount("k")
		m.RunBatch(ctx, time.Second, parrotAddr, []*conn.Call{call}, func(_ int, err error) {
			if err != nil {
				return
			}
			for i := range 2 {
				if _, ok := call.Reply.Number(i); !ok {
					t.Fatalf("%q was taken for an answer: %v", reply, call.Reply)
				}
			}
			if call.ServerTime() <= 0 {
				t.Fatalf("%q was taken for an answer at %d", reply, call.ServerTime())
			}
		})
	})
}

// A request with a reply that makes no sense is sent once more, on another connection. The request
// may have run.
func TestGarbledReplyIsNoAnswer(t *testing.T) {
	for reply, call := range map[string]func(key string) *conn.Call{
		"*1\r\n:1": newCount, "*0": newCount, ":1": newCount, "+OK": newCount,
		"*2\r\n$1\r\nx\r\n:1": newCount, "*3\r\n:1\r\n:0\r\n:30000": newCount,
		":0": dropOf, "*2\r\n:1\r\n:5": dropOf, "$1\r\n1": dropOf, // dropOf has a usual answer, :1
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			b.proxy.OnCommand(onScripts(redistest.Reply(reply)))
			c := startFor(time.Second, b.Manager, call("k"))
			mustMatch(t, c.wait(t, time.Minute), context.DeadlineExceeded)
			if _, unheard := c.Outstanding(); !unheard || c.Attempts < 2 || c.Reply.Len() != 0 {
				t.Errorf("%q: %d attempts, outstanding %v, reply %v", reply, c.Attempts, unheard, c.Reply)
			}
			if sent := b.proxy.Count("TIME"); sent < c.Attempts {
				t.Errorf("%q: %d connections for %d attempts", reply, sent, c.Attempts)
			}
		})
	}
}
