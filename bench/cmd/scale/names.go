// The workload names: very many names are locked once each, and never again.

package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

func names(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("names", flag.ExitOnError)
	n := flags.Int("names", 1_000_000, "how many names are used")
	later := flags.Int("later", 20_000, "how many are used on an embedded server, where days pass at once")
	_ = flags.Parse(args) // it exits on an error
	found := make(map[string]float64)
	if err := leftNow(ctx, *n, found); err != nil {
		return err
	}
	if err := leftLater(ctx, *later, found); err != nil {
		return err
	}
	return figures(found)
}

// leftNow uses names on a real server, and notes what is left in it and in the Client.
func leftNow(ctx context.Context, n int, found map[string]float64) error {
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	if err := useOnce(ctx, client, "warm", 1000, 256); err != nil {
		return err
	}
	heap, memory := measure.HeapInUse(), usedMemory(ctx, rdb)
	began := time.Now()
	if err := useOnce(ctx, client, "once", n, 256); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	keys, err := rdb.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	found["perSecond"] = float64(n) / took
	found["keysLeft"] = float64(keys-1000) / float64(n)
	found["serverBytesLeft"] = (usedMemory(ctx, rdb) - memory) / float64(n)
	found["clientBytesLeft"] = (float64(measure.HeapInUse()) - float64(heap)) / float64(n)
	fmt.Printf("%d names, each used once: %.0f/s; %.2f keys and %.0f B of the server are left for each, %.2f B of the Client\n",
		n, found["perSecond"], found["keysLeft"], found["serverBytesLeft"], found["clientBytesLeft"])
	return nil
}

// usedMemory returns the bytes that the server uses, 0 if it does not say.
func usedMemory(ctx context.Context, rdb *redis.Client) (bytes float64) {
	info := rdb.InfoMap(ctx, "memory").Val()
	_, _ = fmt.Sscan(info["Memory"]["used_memory"], &bytes)
	return bytes
}

// useOnce locks and releases n names, in that many goroutines.
func useOnce(ctx context.Context, client *holdfast.Client, prefix string, n, callers int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				l, err := client.Mutex(fmt.Sprintf("%s:%d", prefix, i)).Lock(ctx)
				if err == nil {
					err = l.Release(ctx)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// leftLater uses names on an embedded server, and looks what is left as days pass.
func leftLater(ctx context.Context, n int, found map[string]float64) error {
	mini, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer mini.Close()
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	if err := useOnce(ctx, client, "once", n, 4); err != nil {
		return err
	}
	const day = 24 * time.Hour
	passed := time.Duration(0)
	for _, at := range []struct {
		figure string
		after  time.Duration
	}{{"keysAfter6Days", 6 * day}, {"keysAfter7Days", 7*day + time.Second}} {
		mini.FastForward(at.after - passed)
		passed = at.after
		found[at.figure] = float64(len(mini.Keys())) / float64(n)
		fmt.Printf("%v after %d names were used: %.2f keys for each\n", at.after, n, found[at.figure])
	}
	return nil
}
