package holdgocron_test

import (
	"context"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	holdgocron "github.com/holdfast-go/holdfast/contrib/gocron"
)

// Each replica runs this. The report is made once every 5 minutes, and its maker stops if it loses the lock.
func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	locker := holdgocron.NewLocker(client, time.Minute) // the clocks differ by less than a minute
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	report := func(ctx context.Context) error {
		ctx = locker.Context(ctx, "report")
		log.Print("reporting")
		return context.Cause(ctx)
	}
	_, err = scheduler.NewJob(gocron.DurationJob(5*time.Minute), gocron.NewTask(report), gocron.WithName("report"))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	select {}
}
