package redistest

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

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

func TestLeftBehindSeesWhatIsLeft(t *testing.T) {
	for _, tc := range []struct {
		name  string
		leave func(t *testing.T, m *MiniServer)
		want  string
	}{
		{"nothing", func(t *testing.T, m *MiniServer) {}, ""},
		{"an allowed key", func(t *testing.T, m *MiniServer) { m.Set("token:x", "1") }, ""},
		{"a key", func(t *testing.T, m *MiniServer) { m.Set("x", "1") }, "1 keys"},
		{"a channel", func(t *testing.T, m *MiniServer) {
			ps := m.Client().Subscribe(context.Background(), "ch")
			t.Cleanup(func() { ps.Close() })
			receive(t, ps)
		}, "1 channels"},
		{"a key for 5 s more", func(t *testing.T, m *MiniServer) {
			m.Client().Set(context.Background(), "x", "1", 5*time.Second)
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			Bubble(t, func(t *testing.T) {
				m := Mini(t)
				tc.leave(t, m)
				w := &witness{TB: t}
				LeftBehind(w, m.Client(), "token:")
				if got := strings.Join(w.errors, " "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("reported %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// Commands that are under way together are delayed together, not one after the other.
func TestALagIsNoQueue(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		const lag, commands = 20 * time.Millisecond, 50
		p := Mini(t).Proxy()
		Lagging(lag, 0)(&p.road)
		conn, err := p.Dial(t.Context(), "", "")
		Must(t, err)
		began := time.Now()
		for range commands {
			conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
			time.Sleep(time.Millisecond) // so that they do not arrive at once
		}
		r := bufio.NewReader(conn)
		for i := range commands {
			Must(t, Err(r.ReadString('\n')))
			if at, want := time.Since(began), max(time.Duration(i)*time.Millisecond+2*lag, commands*time.Millisecond); at != want {
				t.Errorf("command %d is answered after %v, want %v", i, at, want)
			}
		}
		conn.Close()
	})
}
