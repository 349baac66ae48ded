// Slot agrees with the specification, and with a server.

package keys_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func itoa(n int) string { return strconv.Itoa(n) }

func TestSlot(t *testing.T) {
	for key, slot := range map[string]int{
		"": 0, "foo": 12182, "{foo}bar": 12182, "bar{foo}": 12182, "{foo}{bar}": 12182,
		"123456789":            0x31C3 % keys.Slots, // the check value of CRC-16/XMODEM
		"{user1000}.following": keys.Slot("user1000"), "foo{{bar}}zap": keys.Slot("{bar"), "foo{bar}{zap}": keys.Slot("bar"),
	} {
		if got := keys.Slot(key); got != slot {
			t.Errorf("Slot(%q) = %d, want %d", key, got, slot)
		}
	}
	for _, whole := range []string{"foo{}{bar}", "foo{", "foo}", "}foo{", "{foo"} {
		if slot := keys.Slot(whole); slot == keys.Slot("bar") || slot == keys.Slot("foo") {
			t.Errorf("%q has no tag", whole)
		}
	}
}

func TestSlotIsTheServers(t *testing.T) {
	node := redistest.Cluster(t, 1, 0).Nodes()[0].Admin()
	ctx := redistest.Within(t, time.Minute)

	random := rand.New(rand.NewPCG(1, 2))
	names := make([]string, redistest.Count(t, 20_000))
	for i := range names {
		names[i] = randomName(random)
	}
	replies := make([]*redis.IntCmd, len(names))
	_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			replies[i] = p.ClusterKeySlot(ctx, name)
		}
		return nil
	})
	redistest.Must(t, err)
	for i, name := range names {
		if got := keys.Slot(name); int64(got) != replies[i].Val() {
			t.Fatalf("Slot(%q) = %d, the server says %d", name, got, replies[i].Val())
		}
	}
}

// randomName returns a name. About every second name has odd braces.
func randomName(random *rand.Rand) string {
	name := make([]byte, random.IntN(24))
	for i := range name {
		switch random.IntN(12) {
		case 0:
			name[i] = '{'
		case 1:
			name[i] = '}'
		default:
			name[i] = byte(random.IntN(256))
		}
	}
	return string(name)
}
