// Command both sells bolts under a lock in etcd and one of Holdfast, while a service changes over.
package main

import (
	"context"
	"log"
	"os"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-go/holdfast"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, etcd string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	locks := holdfast.New(rdb)
	defer locks.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}})
	if err != nil {
		return err
	}
	defer client.Close()
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		return err
	}
	defer session.Close()
	for range 20 {
		err := both(ctx, session, locks, func(ctx context.Context) error { return sell(ctx, rdb) })
		if err != nil {
			return err
		}
	}
	return nil
}

// both runs work while it holds the lock in etcd and then that of Holdfast.
func both(ctx context.Context, session *concurrency.Session, client *holdfast.Client, work func(context.Context) error) error {
	old := concurrency.NewMutex(session, "lock/bolt")
	if err := old.Lock(ctx); err != nil {
		return err
	}
	defer old.Unlock(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)() // the lock goes with its session
	return holdfast.Do(ctx, client.Mutex("bolt"), work)
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, rdb *redis.Client) error {
	left, err := rdb.Get(ctx, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return rdb.Set(ctx, "stock:bolt", left-1, 0).Err()
}
