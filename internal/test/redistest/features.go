// What the server binary can do.

package redistest

import (
	"sync"
	"testing"
)

// features are those of the server binary. They are found out once.
var features struct {
	once           sync.Once
	tls, shardedPS bool
}

// look starts a server and asks it.
func look(t testing.TB) {
	t.Helper()
	features.once.Do(func() {
		admin := Server(t).Admin()
		ports, err := admin.ConfigGet(t.Context(), "tls-port").Result()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		_, features.tls = ports["tls-port"]
		commands, err := admin.Do(t.Context(), "COMMAND", "INFO", "SPUBLISH").Slice()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		features.shardedPS = len(commands) == 1 && commands[0] != nil
	})
}

// HasShardedChannels reports whether the server binary knows channels that belong to slots: Redis from 7 on.
func HasShardedChannels(t testing.TB) bool {
	t.Helper()
	look(t)
	return features.shardedPS
}

// needsTLS skips t if the server binary was built without TLS.
func needsTLS(t testing.TB) {
	t.Helper()
	if look(t); !features.tls {
		t.Skip("the server was built without TLS")
	}
}
