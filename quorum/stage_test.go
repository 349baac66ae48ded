// Where the tests of a Quorum play: processes that lock one on several servers in virtual time. No test of this package
// leaves a goroutine behind.

package quorum_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/quorum"
)

const (
	name      = redises.Name
	tokenKey  = redises.TokenKey
	markerKey = redises.MarkerKey
)

type stage struct{ *redises.World }

type process struct{ *redises.Process }

func play(t *testing.T, n int, scene func(t *testing.T, w *stage)) {
	t.Helper()
	redises.Play(t, n, func(t *testing.T, w *redises.World) { scene(t, &stage{w}) })
}

func (w *stage) process(options ...holdfast.Option) *process {
	w.T.Helper()
	return &process{w.Process(options...)}
}

// began returns a process that has begun the quorum with the quorum's very first lock.
func (w *stage) began() *process {
	w.T.Helper()
	p := w.process()
	redises.Release(w.T, w.lock(p.quorum()))
	return p
}

func (p *process) quorum(options ...holdfast.LeaseOption) *quorum.Quorum {
	return holdfast.NewQuorum(name, p.Clients, options...)
}

// Unplug cuts the process off from those servers. Plug ends that.
func (p *process) Unplug(servers ...int) {
	for _, i := range servers {
		p.Process.Unplug(i)
	}
}

func (p *process) Plug(servers ...int) {
	for _, i := range servers {
		p.Process.Plug(i)
	}
}

func (w *stage) lock(q *quorum.Quorum) *quorum.Lease {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), 5*time.Minute)
	defer cancel()
	return redises.Locked(w.World, ctx, q.Lock)
}

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs every connection that a test refuses
	redistest.Main(m)
}
