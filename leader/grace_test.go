// This test is about Grace: a term ends while nobody else can lead.

package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
)

// A leader that is cut off ends its work that much before another leads, whether the election or the
// Client says so.
func TestGrace(t *testing.T) {
	for what, tc := range map[string]struct {
		client []holdfast.Option
		own    []leader.Option
	}{
		"of the election": {nil, []leader.Option{leader.Grace(10 * time.Second)}},
		"of the Client":   {[]holdfast.Option{holdfast.WithDefaults(holdfast.Grace(10 * time.Second))}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				work := func(ctx context.Context, _ *leader.Term) error {
					<-ctx.Done()
					return nil
				}
				a := s.candidateOf(s.Process(tc.client...), "a", tc.own...).campaign(work)
				b := s.candidate("b").campaign(work)
				s.At(5 * time.Second)
				a.p.Unplug(true)
				s.At(40 * time.Second)
				_, _, ended, why := a.seen()
				world.WantErr(t, why, holdfast.ErrLost)
				_, began, _, _ := b.seen()
				world.Within(t, "from the end of the term to the next", began-ended, 10*time.Second, 11*time.Second)
				a.p.Unplug(false)
				a.retire()
				b.retire()
			})
		})
	}
}
