package redistest

import (
	"bufio"
	"testing"
	"time"
)

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
