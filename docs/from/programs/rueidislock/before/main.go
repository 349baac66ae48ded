// Command before sells bolts under a lock of rueidislock.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		TryNextAfter: time.Second, // also the limit of each request
	})
	if err != nil {
		return err
	}
	defer locks.Close()
	for range 20 {
		if err := sell(ctx, locks); err != nil {
			return err
		}
	}
	return nil
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, locks rueidislock.Locker) error {
	held, release, err := locks.WithContext(ctx, "bolt")
	if err != nil {
		return err
	}
	defer release()
	c := locks.Client()
	left, err := c.Do(held, c.B().Get().Key("stock:bolt").Build()).AsInt64()
	if err != nil {
		return err
	}
	value := strconv.FormatInt(left-1, 10)
	return c.Do(held, c.B().Set().Key("stock:bolt").Value(value).Build()).Error()
}
