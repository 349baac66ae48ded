// An Ear hears the channels of its name.

package inspect

import (
	"context"
	"log/slog"
	"net"
	"slices"
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

// A server that does not answer keeps nobody who has stopped listening: neither by a dial nor by a greeting.
func TestAnEarThatStopsWaitsForNoServer(t *testing.T) {
	for _, hangs := range []string{"dial", "greeting"} {
		t.Run(hangs, func(t *testing.T) {
			dialled, over := make(chan struct{}, 100), make(chan struct{})
			rdb := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if end, ends := ctx.Deadline(); !ends || time.Until(end) > time.Second {
					dialled <- struct{}{} // this dial is go-redis's own, not that of Listen
				}
				if hangs == "dial" {
					select {
					case <-ctx.Done():
					case <-over:
					}
					return nil, net.ErrClosed
				}
				silent, other := net.Pipe()
				t.Cleanup(func() { _ = other.Close() })
				return silent, nil
			}})
			defer func() { _ = rdb.Close() }()
			m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
			redistest.Must(t, err)
			defer m.Close()
			brief, cancel := context.WithCancel(t.Context())
			ended := time.AfterFunc(10*time.Millisecond, cancel)
			defer ended.Stop()
			began := time.Now()
			ear := Listen(brief, m, "", m.Address(), "x")
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("it began after %v, though nobody wanted it any more", took)
			}
			<-dialled
			stopped := make(chan struct{})
			go func() { defer close(stopped); ear.Stop() }()
			select {
			case <-stopped:
			case <-time.After(time.Second):
				t.Error("it waits")
				close(over)
				<-stopped
			}
		})
	}
}
