package redistest

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

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
