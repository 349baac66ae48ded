package holdgoose_test

import (
	"context"
	"database/sql"
	"log"
	"os"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	holdgoose "github.com/holdfast-go/holdfast/contrib/goose"
)

// Each replica runs this as it starts. One migrates, and the others wait for it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	db, err := sql.Open("sqlite", "shop.db")
	if err != nil {
		log.Fatal(err)
	}
	locker := holdgoose.New(client.Mutex("shop:migrations"))
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"), goose.WithLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := provider.Up(ctx); err != nil {
		log.Fatal(err)
	}
}
