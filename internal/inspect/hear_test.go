// An Ear hears the channels of its name.

package inspect

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A subscription by these patterns hears the channels of the name, and of no other.
func TestChannelsOf(t *testing.T) {
	at, err := channelsOf("", "orders:42")
	want := []string{
		"redisson_lock__channel:{orders:42}", "holdfast_leader_changes:{orders:42}",
		"redisson_rwlock:{orders:42}", "redisson_sc:{orders:42}", "redisson_countdownlatch__channel__{orders:42}",
		"holdfast_barrier_channel:{orders:42}", "holdfast_slots_channel:{orders:42}",
		"holdfast_once_channel:{orders:42}", "holdfast_lock_grant:{orders:42}:*",
	}
	if got := at.patterns(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := channelsOf("", "holdfast_x"); err == nil {
		t.Error("a name that can be none has channels")
	}
	if at, _ = channelsOf("", `a*?[\`); at.patterns()[0] != `redisson_lock__channel:{a\*\?\[\\}` {
		t.Error(at.patterns()[0])
	}
}

// deaf is a connection with a server that reads and answers nothing, and on which no deadline counts. It
// signals each write, which waits for the server.
type deaf struct {
	net.Conn
	waits chan<- struct{}
}

func (d deaf) Write(b []byte) (int, error) {
	d.waits <- struct{}{}
	return d.Conn.Write(b)
}

func (deaf) SetDeadline(time.Time) error      { return nil }
func (deaf) SetReadDeadline(time.Time) error  { return nil }
func (deaf) SetWriteDeadline(time.Time) error { return nil }

// A server that does not answer keeps nobody who has stopped listening: neither by a dial nor by a greeting.
func TestAnEarThatStopsWaitsForNoServer(t *testing.T) {
	for _, hangs := range []string{"dial", "greeting"} {
		t.Run(hangs, func(t *testing.T) {
			waits, over := make(chan struct{}, 100), make(chan struct{})
			rdb := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if hangs == "greeting" {
					silent, other := net.Pipe()
					go func() { <-over; _ = other.Close() }()
					return deaf{silent, waits}, nil
				}
				waits <- struct{}{}
				select {
				case <-ctx.Done():
				case <-over:
				}
				return nil, net.ErrClosed
			}})
			defer func() { _ = rdb.Close() }()
			m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
			redistest.Must(t, err)
			defer m.Close()
			end := sync.OnceFunc(func() { close(over) })
			defer end()
			ctx, cancel := context.WithCancel(t.Context())
			var ear *Ear
			returns := func(what string, f func()) {
				done := make(chan struct{})
				go func() { defer close(done); f() }()
				select {
				case <-done:
				case <-time.After(20 * time.Second):
					t.Errorf("%s waits for the server", what)
					end()
					<-done
				}
			}
			go func() { <-waits; cancel() }()
			returns("Listen", func() { ear = Listen(ctx, m, "", m.Address(), "x") })
			<-waits // go-redis subscribes again
			returns("Stop", ear.Stop)
		})
	}
}
