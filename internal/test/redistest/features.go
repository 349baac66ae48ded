// What the server binary can do.

package redistest

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
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
		features.tls = hasTLS(t)
		commands, err := Server(t).Admin().Do(t.Context(), "COMMAND", "INFO", "SPUBLISH").Slice()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		features.shardedPS = len(commands) == 1 && commands[0] != nil
	})
}

// hasTLS starts the server binary with a port for TLS and without a certificate, so that it ends at once and says
// why. Valkey without TLS has the settings all the same, and dies of them at run time.
func hasTLS(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	said, _ := exec.CommandContext(ctx, Needs(t), "--port", "0", "--tls-port", strconv.Itoa(freePort(t, false))).CombinedOutput()
	return !strings.Contains(string(said), "Bad directive") && !strings.Contains(string(said), "finding TLS support")
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
