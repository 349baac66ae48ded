package crew

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestARunOfScaleEndsWithFiguresOrSaysWhyNot(t *testing.T) {
	redistest.Needs(t)
	s, err := BuildScale(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Measure(t.Context(), "", []string{"gather", "-clients", "16", "-do", "waiting", "-for", "2s"})
	if err != nil {
		t.Fatal(err)
	}
	// A Client that waits has connections, and polls now and then.
	if f[ConnectionsPerClient] < 1 || f[CommandsPerSecond] <= 0 || f[Lost] != 0 {
		t.Errorf("%v", f)
	}
	f, err = s.Measure(t.Context(), "", []string{"waiters", "-waiters", "40", "-for", "1s"})
	if err != nil || f[Seconds] <= 0 || f[Lost] != 0 {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := s.Measure(t.Context(), "", []string{"nothing"}); err == nil || !strings.Contains(err.Error(), "say which workload") {
		t.Errorf("a workload that there is not: %v", err)
	}
	if _, err := s.Measure(t.Context(), "/no/such/server", []string{"names"}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a server that there is not: %v", err)
	}
}
