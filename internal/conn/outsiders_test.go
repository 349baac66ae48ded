// A script knows whether others than Clients listen, whatever the server says of the number of listeners.

package conn_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// others replies with 1 if others than Clients listen on ARGV[2]; Clients listen on ARGV[3] too.
var others = conn.NewScript("others", "return outsiders(ARGV[1], ARGV[2], ARGV[3]) and 1 or 0",
	conn.Timeless, conn.Always)

func TestOthersAreToldFromClients(t *testing.T) {
	// Each server stands for redis in the script.
	const answers = `local server = redis
		local redis = {pcall = function(command, ...)
			local answer = server.pcall(command, ...)
			if command == 'PUBSUB' then return count(answer) end
			return answer
		end}
		`
	counts := func(reply string) string { return "local function count(a) return " + reply + " end\n" + answers }
	servers := map[string]string{
		"counts": counts("a"),
		"adds an address to each number, as Valkey 9 does": counts("{a[1], a[2] + 45386000, a[3], a[4] + 45387000}"),
		"adds an address to the number of all":             counts("{a[1], a[2] + 45386000, a[3], a[4]}"),
		"adds an address to the number of Clients":         counts("{a[1], a[2], a[3], a[4] + 93000000000000}"),
	}
	mute := counts("{err = 'NOPERM'}")
	deaf := `local redis = {pcall = function(command, ...)
			if command == 'PUBSUB' then return {'all', 45386000, 'clients', 45386000} end
			return {err = 'NOPERM'}
		end}
		`
	test := func(t *testing.T, rdb *redis.Client) {
		asked := func(server string) bool {
			n, err := rdb.Eval(t.Context(), server+others.Source(), nil, "PUBLISH", "all", "clients").Int()
			redistest.Must(t, err)
			return n == 1
		}
		listen := func(channels ...string) {
			sub := rdb.Subscribe(t.Context(), channels...)
			t.Cleanup(func() { _ = sub.Close() })
			for range channels {
				redistest.Must(t, redistest.Err(sub.Receive(t.Context())))
			}
		}
		const most = 33 // Valkey 9 counts 8, 15, 16 and 29 to 32 wrongly
		for clients := range most {
			for name, server := range servers {
				if asked(server) {
					t.Errorf("%d Clients listen, and the server %s: others are thought to listen", clients, name)
				}
			}
			listen("all", "clients")
		}
		for name, server := range map[string]string{"does not say": mute, "counts wrongly, and lets nobody publish": deaf} {
			if !asked(server) {
				t.Errorf("the server %s: no others are thought to listen", name)
			}
		}
		listen("all")
		for name, server := range servers {
			if !asked(server) {
				t.Errorf("another listens, and the server %s: no others are thought to listen", name)
			}
		}
	}
	t.Run("embedded", func(t *testing.T) { test(t, redistest.Mini(t).Client()) })
	t.Run("on a real server", func(t *testing.T) { test(t, redistest.Server(t).Client(t)) })
}
