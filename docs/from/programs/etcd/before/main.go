// Command before sells bolts under a lock in etcd.
package main

import (
	"context"
	"log"
	"os"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, etcd string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
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
		if err := sell(ctx, rdb, session); err != nil {
			return err
		}
	}
	return nil
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, rdb *redis.Client, session *concurrency.Session) error {
	m := concurrency.NewMutex(session, "lock/bolt")
	if err := m.Lock(ctx); err != nil {
		return err
	}
	defer m.Unlock(context.WithoutCancel(ctx))
	left, err := rdb.Get(ctx, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return rdb.Set(ctx, "stock:bolt", left-1, 0).Err() // while session.Done() is open
}
