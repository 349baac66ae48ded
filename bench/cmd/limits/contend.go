// The contenders, and what their goroutines do.

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/limiter"
)

// paced is the rate at which those that wait come, a second.
const paced = 200

// contender is a limiter. open makes what one process has of it.
type contender struct {
	name string
	open func(addr string, rate, burst int) (ask, wait func(ctx context.Context) error, closeAll func())
	wait any // nil: it takes no part in waits
}

var contenders = []contender{
	{"holdfast", openHoldfast(), true},
	{"holdfast, Share(16)", openHoldfast(limiter.Share(16)), nil},
	{"redis_rate", openRate, true},
}

func openHoldfast(more ...limiter.Option) func(string, int, int) (ask, wait func(context.Context) error, closeAll func()) {
	return func(addr string, rate, burst int) (ask, wait func(context.Context) error, closeAll func()) {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		client := holdfast.New(rdb)
		l := client.Limiter("bench", append([]limiter.Option{limiter.Rate(rate, time.Second), limiter.Burst(burst)}, more...)...)
		return func(ctx context.Context) error {
				_, err := l.Allow(ctx, 1)
				return err
			}, func(ctx context.Context) error { return l.Wait(ctx, 1) }, func() {
				_, _ = client.Close(), rdb.Close()
			}
	}
}

// openRate waits as redis_rate's users do: by asking again when the answer says.
func openRate(addr string, rate, burst int) (ask, wait func(context.Context) error, closeAll func()) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	l, limit := redis_rate.NewLimiter(rdb), redis_rate.Limit{Rate: rate, Burst: burst, Period: time.Second}
	ask = func(ctx context.Context) error {
		_, err := l.Allow(ctx, "bench", limit)
		return err
	}
	wait = func(ctx context.Context) error {
		for {
			r, err := l.Allow(ctx, "bench", limit)
			if err != nil || r.Allowed > 0 {
				return err
			}
			select {
			case <-time.After(r.RetryAfter):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return ask, wait, func() { _ = rdb.Close() }
}

// call is one call that has returned.
type call struct{ came, went time.Time }

// ask makes the goroutines ask as fast as they can.
func (o options) ask(ctx context.Context, server *measure.Server, c contender, rate int) (figures, error) {
	return o.contend(ctx, server, c, rate, rate, false)
}

// wait makes the goroutines wait for turn after turn.
func (o options) wait(ctx context.Context, server *measure.Server, c contender) (figures, error) {
	return o.contend(ctx, server, c, paced, 1, true)
}

func (o options) contend(ctx context.Context, server *measure.Server, c contender, rate, burst int, waits bool) (figures, error) {
	if err := server.Empty(ctx); err != nil {
		return figures{}, err
	}
	var does []func(context.Context) error
	for range o.processes {
		ask, wait, closeAll := c.open(server.Addr, rate, burst)
		defer closeAll()
		if waits {
			ask = wait
		}
		if err := ask(ctx); err != nil { // connects, and loads the script
			return figures{}, err
		}
		does = append(does, ask)
	}
	before, err := server.Served(ctx)
	if err != nil {
		return figures{}, err
	}
	began := time.Now()
	calls, err := o.work(ctx, does)
	took := time.Since(began)
	after, err2 := server.Served(ctx)
	if err == nil {
		err = err2
	}
	return sum(calls, took, after.Since(before).CPU, waits), err
}

// work makes each goroutine do its work until the time is over, and returns their calls.
func (o options) work(ctx context.Context, does []func(context.Context) error) ([][]call, error) {
	calls := make([][]call, o.goroutines)
	errs := make([]error, o.goroutines)
	end := time.Now().Add(o.window)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				came := time.Now()
				errs[i] = does[i%len(does)](ctx)
				calls[i] = append(calls[i], call{came, time.Now()})
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return calls, err
		}
	}
	return calls, nil
}

// slack is how much earlier a call must have come to count as passed: Redis hears of calls in another order than they began.
const slack = 20 * time.Millisecond

func sum(each [][]call, took, server time.Duration, waits bool) figures {
	var f figures
	var all []call
	squares := 0.0
	for _, calls := range each {
		all = append(all, calls...)
		squares += float64(len(calls)) * float64(len(calls))
	}
	n := float64(len(all))
	f.perSecond, f.server = n/took.Seconds(), server/time.Duration(max(len(all), 1))
	f.fairness = n * n / (float64(len(each)) * squares)
	if !waits {
		f.passed = -1
		return f
	}
	slices.SortFunc(all, func(a, b call) int { return a.went.Compare(b.went) })
	var late []time.Duration
	latest := time.Time{} // who came last among those that have gone
	for i, c := range all {
		if latest.After(c.came.Add(slack)) {
			f.passed++
		}
		if c.came.After(latest) {
			latest = c.came
		}
		late = append(late, c.went.Sub(all[0].went)-time.Duration(i)*time.Second/paced)
	}
	slices.Sort(late)
	f.late = late[len(late)/2]
	return f
}
