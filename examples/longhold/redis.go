// Where the example runs: on the Redis that REDIS_URL names, or on an embedded
// server.

package main

import (
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// connect returns a client and what closes it.
func connect() (*redis.Client, func(), error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		options, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, err
		}
		rdb := redis.NewClient(options)
		return rdb, func() { _ = rdb.Close() }, nil
	}
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out as time passes
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	return rdb, func() { _ = rdb.Close(); server.Close() }, nil
}
