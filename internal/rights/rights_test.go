// The script that tries rights out reports what is missing, and leaves nothing behind.
// TestCheckRightsOfEachKind shows that the script tries what each kind needs.

package rights

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var bg = context.Background()

func TestMain(m *testing.M) { redistest.Main(m) }

const client = "11111111-1111-1111-1111-111111111111"

// probe runs the script in the form in which a Client sends it.
func probe(rdb *redis.Client, n Need) (string, error) {
	call := n.Probe()
	reply, err := rdb.Eval(bg, call.Script.Source(), call.Keys, append([]any{0}, call.Args...)...).Slice()
	if err != nil {
		return "", err
	}
	return reply[2].(string), nil
}

// The script finds all rights of each kind, and leaves nothing behind.
func TestProbeScript(t *testing.T) {
	rdb := redistest.Mini(t).Client()
	for _, n := range Needs("", "orders:x", client, false) {
		if refused, err := probe(rdb, n); refused != "" || err != nil {
			t.Errorf("%s: %q, %v", n.Kind, refused, err)
		}
		for _, key := range rdb.Keys(bg, "*").Val() {
			if ttl := rdb.PTTL(bg, key).Val(); ttl <= 0 || ttl > time.Second {
				t.Errorf("%s leaves %s for %v", n.Kind, key, ttl)
			}
		}
		rdb.FlushAll(bg)
	}
}

func TestProbeScript_Refused(t *testing.T) {
	server := redistest.Server(t)
	admin := server.Admin()
	for _, tc := range []struct {
		rules, want, fails string
	}{
		{"~* +@all -zadd -hset", "hset zadd", ""},
		{"~* +@all -zadd -pexpire", "pexpire", ""}, // the script makes no key that would stay
		{"~other +@all", "", "NOPERM"},
	} {
		args := []any{"ACL", "SETUSER", "u", "reset", "on", ">p"}
		for _, rule := range strings.Fields(tc.rules) {
			args = append(args, rule)
		}
		redistest.Must(t, admin.Do(bg, args...).Err())
		rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" })
		refused, err := probe(rdb, Need{Kind: "k", Keys: []string{"a"}, Commands: []string{"get", "hset", "zadd", "zrem"}})
		if refused != tc.want || tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
			t.Errorf("%s: %q, %v", tc.rules, refused, err)
		}
		for _, key := range admin.Keys(bg, "*").Val() {
			if admin.PTTL(bg, key).Val() < 0 {
				t.Errorf("%s leaves %s", tc.rules, key)
			}
		}
		admin.FlushAll(bg)
	}
}
