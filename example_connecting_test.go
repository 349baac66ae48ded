// The examples are the programs of docs/connecting.md, so that these programs compile.

package holdfast_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()

	client := holdfast.New(rdb)
	defer client.Close() // before rdb.Close, as deferred calls run last to first
}

func ExampleNew_sentinel() {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "mymaster",
		SentinelAddrs: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
	})
	defer rdb.Close()

	client := holdfast.New(rdb)
	defer client.Close()
}

func ExampleNew_cluster() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"node-1:6379", "node-2:6379", "node-3:6379"},
	})
	defer rdb.Close()

	client := holdfast.New(rdb)
	defer client.Close()
}

func ExampleNew_tls() {
	pem, err := os.ReadFile("ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		log.Fatal(errors.New("ca.pem has no certificate"))
	}
	rdb := redis.NewClient(&redis.Options{
		Addr:      "redis.example.com:6379",
		TLSConfig: &tls.Config{RootCAs: roots},
	})
	defer rdb.Close()

	client := holdfast.New(rdb)
	defer client.Close()
}

func ExampleNew_acl() {
	rdb := redis.NewClient(&redis.Options{
		Addr:     "localhost:6379",
		Username: "holdfast",
		Password: os.Getenv("REDIS_PASSWORD"),
	})
	defer rdb.Close()

	client := holdfast.New(rdb)
	defer client.Close()
}

func ExampleClient_Check() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	findings, err := client.Check(context.Background(), "orders:")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		log.Println(f)
	}
}

// A Redis that programs share gives each of them one prefix.
func ExampleWithKeyPrefix() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", Username: "app"}) // ~app:* &app:*
	defer rdb.Close()
	client := holdfast.New(rdb, holdfast.WithKeyPrefix("app:"))
	defer client.Close()

	fmt.Println(client.Mutex("orders").Name()) // at the key app:orders
	// Output: orders
}
