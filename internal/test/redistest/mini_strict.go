// An embedded server that reads scripts before it runs them, as Alibaba's cluster does.

package redistest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/strict"
)

// Strictness is what a server refuses in scripts.
type Strictness int

const (
	// AnyScript runs every script.
	AnyScript Strictness = iota
	// NoPubSub refuses a script that names a command of Pub/Sub, in whatever way, whose commands
	// are not literals or are arguments of others, or that calls unpack, as Alibaba's cluster does.
	NoPubSub
	// DeclaredKeys also refuses keys that are not written KEYS[...]. Older versions do, and they refuse
	// KEYS[i] too, which this does not.
	DeclaredKeys
	// NoScript refuses every script.
	NoScript
)

// RefusalOfScripts is what the errors of a strict server begin with. The words of Alibaba's about
// Pub/Sub and unpack are not documented, so those here are made up.
const RefusalOfScripts = "ERR bad lua script for redis cluster"

// CheckScripts makes the server refuse scripts from now on, when they are loaded. It forgets those
// that it has.
func (m *MiniServer) CheckScripts(how Strictness) {
	m.t.Helper()
	m.mu.Lock()
	m.strictness = how
	m.mu.Unlock()
	c := redis.NewClient(&redis.Options{Dialer: m.Dial, MaintNotificationsConfig: quiet()})
	defer c.Close()
	if err := c.ScriptFlush(context.Background()).Err(); err != nil {
		m.t.Fatalf("redistest: forget the scripts: %v", err)
	}
}

// Deny makes the server refuse commands of scripts, and no others, as it does to a user who has not got the
// rights. Without names it refuses none any more.
func (m *MiniServer) Deny(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.denied = names
}

// Denied is the error of a command that Deny has named, in the words of Redis 7.0.
const Denied = "ERR The user executing the script can't run this command or subcommand"

func (m *MiniServer) denies(peer *server.Peer, name string) bool {
	m.mu.Lock()
	denied := slices.Contains(m.denied, name)
	m.mu.Unlock()
	if denied = denied && insideScript(peer); denied {
		peer.WriteError(Denied)
	}
	return denied
}

// refuses answers a command that brings a script which the server refuses.
func (m *MiniServer) refuses(peer *server.Peer, name string, args []string) bool {
	m.mu.Lock()
	how := m.strictness
	m.mu.Unlock()
	var source string
	switch {
	case how == AnyScript:
		return false
	case name == "EVAL" && len(args) > 0:
		source = args[0]
	case name == "SCRIPT" && len(args) > 1 && strings.EqualFold(args[0], "load"):
		source = args[1]
	default:
		return false
	}
	key := reading{how, source}
	why, known := readings.Load(key)
	if !known {
		why = refusal(how, source)
		readings.Store(key, why)
	}
	if why != "" {
		peer.WriteError(RefusalOfScripts + ", " + why.(string))
	}
	return why != ""
}

// reading is a script that a server has read.
type reading struct {
	how    Strictness
	source string
}

// readings has why each reading was refused. Reading a script takes long, and each test has servers
// of its own.
var readings sync.Map

// refusal returns why a script is refused, "" if it is not.
func refusal(how Strictness, source string) string {
	found, err := strict.Read("script", source)
	switch {
	case err != nil:
		return "" // the server itself says what is wrong
	case how == NoScript:
		return "scripts are off"
	case len(found.Loose) > 0:
		return "first parameter of redis.call/redis.pcall must be a single literal string."
	case how == DeclaredKeys && len(found.Keyless) > 0:
		return "all the keys that the script uses should be passed using the KEYS array, and KEYS should not be in expression"
	case len(found.Spoken) > 0:
		return "pub/sub commands are not supported: " + found.Spoken[0]
	case len(found.Nested) > 0:
		return "nested redis.call/redis.pcall"
	case len(found.Unpacks) > 0:
		return "unpack is not supported"
	}
	return ""
}
