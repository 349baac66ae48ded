package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/limiter"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// An API allows 100 calls a minute, to all processes together. Each call waits for its turn.
func ExampleLimiter_Wait() {
	here, there, done := newClients()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	for _, client := range []*holdfast.Client{here, there} {
		api := client.Limiter("stripe", limiter.Rate(100, time.Minute), limiter.Burst(20))
		if err := api.Wait(ctx, 1); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("calls the API")
	}
	// Output:
	// calls the API
	// calls the API
}

// A turn that comes too late is not waited for.
func ExampleLimiter_Wait_deadline() {
	client, _, done := newClients()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	mails := client.Limiter("mails", limiter.Rate(1, time.Hour))
	fmt.Println(mails.Wait(ctx, 1))
	err := mails.Wait(ctx, 1)
	var busy *holdfast.BusyError
	if errors.As(err, &busy) {
		fmt.Println("come back in", busy.Left.Round(time.Hour))
	}
	// Output:
	// <nil>
	// come back in 1h0m0s
}

// Each user may send three requests at once, and one a second.
func ExampleLimiter_Allow() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	requests := client.Limiter("requests", limiter.Rate(1, time.Second), limiter.Burst(3))
	for _, user := range []string{"ada", "ada", "ada", "ada", "bob"} {
		d, err := requests.For(user).Allow(ctx, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(user, d.Allowed, d.Remaining)
	}
	// Output:
	// ada true 2
	// ada true 1
	// ada true 0
	// ada false 0
	// bob true 2
}

// The API now allows half as much, for all processes, and for those that wait.
func ExampleLimiter_Set() {
	here, there, done := newClients()
	defer done()
	ctx := context.Background()

	if err := here.Limiter("stripe", limiter.Rate(100, time.Minute)).Set(ctx, limiter.Rate(50, time.Minute)); err != nil {
		fmt.Println(err)
		return
	}
	d, err := there.Limiter("stripe", limiter.Rate(100, time.Minute)).Allow(ctx, 1)
	fmt.Println(d.Rate, d.Per, err)
	// Output: 50 1m0s <nil>
}

// At most two exports run at the same time, and ten an hour begin.
func ExampleLimiter_Locker() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	exports := client.Limiter("exports", limiter.Rate(10, time.Hour), limiter.Concurrent(2))
	err := holdfast.Do(ctx, exports.Locker(), func(context.Context) error {
		fmt.Println("exporting")
		return nil
	})
	fmt.Println(err)
	// Output:
	// exporting
	// <nil>
}

// The same, where the work is not one function.
func ExampleLimiter_Acquire() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	l, err := client.Limiter("exports", limiter.Rate(10, time.Hour), limiter.Concurrent(2)).Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	fmt.Println("exporting")
	// Output: exporting
}

// A message is sent when its time has come, unless it is cancelled before.
func ExampleReservation_Delay() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	mails := client.Limiter("mails", limiter.Rate(1, time.Hour))
	for range 2 {
		r, err := mails.Reserve(ctx, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("in", r.Delay().Round(time.Hour))
		if r.Delay() > time.Minute {
			fmt.Println(r.Cancel(ctx))
		}
	}
	// Output:
	// in 0s
	// in 1h0m0s
	// <nil>
}
