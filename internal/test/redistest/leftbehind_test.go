package redistest

import (
	"context"
	"strings"
	"testing"
	"time"
)

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
