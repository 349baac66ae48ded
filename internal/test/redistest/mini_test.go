package redistest

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMiniSnapshotShowsEveryType(t *testing.T) {
	m := Mini(t)
	c := m.Client()
	ctx := t.Context()
	c.HSet(ctx, "h", "b", "2", "a", "1")
	c.ZAdd(ctx, "z", redis.Z{Score: 2, Member: "y"}, redis.Z{Score: 1, Member: "x"})
	c.RPush(ctx, "l", "2", "1")
	c.SAdd(ctx, "s", "b", "a")
	want := `"h" hash pttl=-1
  "a" = "1"
  "b" = "2"
"l" list pttl=-1
  "2"
  "1"
"s" set pttl=-1
  "a"
  "b"
"z" zset pttl=-1
  1 "x"
  2 "y"
`
	Equal(t, m.Snapshot(), want, "snapshot:\n%s\nwant:\n%s", want)
}

const threeWrites = `
redis.call('SET', KEYS[1], '1')
redis.pcall('SET', KEYS[2], '2')
return redis.call('SPUBLISH', 'ch', 'x')`

func TestMiniFailsEachCommandInsideAScript(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		m := Mini(t)
		c := m.Client()
		script := redis.NewScript(threeWrites)
		want := []struct {
			keys   string
			failed bool
		}{{"", true}, {"a", false}, {"a b", true}, {"a b", false}} // the pcall swallows its error
		for k := 1; ; k++ {
			m.FlushAll()
			disarm := m.FailInside(k)
			c.Ping(t.Context()) // a command outside a script does not count
			err := script.Run(t.Context(), c, []string{"a", "b"}).Err()
			fired := disarm()
			if got := strings.Join(m.Keys(), " "); got != want[k-1].keys || (err != nil) != want[k-1].failed {
				t.Errorf("k=%d: keys %q, err %v", k, got, err)
			}
			if fired != (k <= 3) {
				t.Errorf("k=%d: fired %v", k, fired)
			}
			if !fired {
				return
			}
		}
	})
}

func TestMiniFailsACommandByName(t *testing.T) {
	m := Mini(t)
	c := m.Client()
	disarm := m.FailCommand("set", 2)
	c.Set(t.Context(), "outside", "1", 0)
	c.Eval(t.Context(), threeWrites, []string{"a", "b"})
	if got := strings.Join(m.Keys(), " "); !disarm() || got != "a outside" {
		t.Errorf("keys %q", got)
	}
}
