package holdcron_test

import (
	"context"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast"
	holdcron "github.com/holdfast-go/holdfast/contrib/cron"
)

// Each replica runs this. The report of each day is made once.
func Example() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	c := cron.New(cron.WithLocation(time.UTC))
	schedule, err := cron.ParseStandard("@daily")
	if err != nil {
		log.Fatal(err)
	}
	ticks := holdcron.Ticks{Name: "report", At: holdcron.Latest(schedule, c.Location())}
	report := holdcron.JobFunc(func(ctx context.Context) {
		day, _ := holdcron.TickFrom(ctx)
		log.Print("the report of ", day)
	})
	c.Schedule(schedule, cron.NewChain(
		holdcron.Once(ctx, client, ticks, cron.DefaultLogger),
		holdcron.Locked(ctx, client.Mutex("report"), cron.DefaultLogger), // the last one may still be at it
	).Then(report))
	c.Run()
}
