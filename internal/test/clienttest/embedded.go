// A Client for examples, which have no test.

package clienttest

import (
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// Embedded returns two Clients of one embedded server, as two processes have them, and a function that closes
// all three.
func Embedded() (client, other *holdfast.Client, done func()) {
	_, client, other, done = EmbeddedServer()
	return client, other, done
}

// EmbeddedServer is Embedded, for an example that looks at the server too.
func EmbeddedServer() (server *miniredis.Miniredis, client, other *holdfast.Client, done func()) {
	server = miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out as time passes
	if err := server.Start(); err != nil {
		panic(err)
	}
	open := func() (*holdfast.Client, func()) {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		c := holdfast.New(rdb)
		return c, func() {
			_ = c.Close()
			_ = rdb.Close()
		}
	}
	client, closeOne := open()
	other, closeOther := open()
	return server, client, other, func() {
		closeOne()
		closeOther()
		server.Close()
	}
}
