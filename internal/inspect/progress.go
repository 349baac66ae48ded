// Progress: how far a Scan is, for those who wait for it.

package inspect

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Progress is how far a Scan is.
type Progress struct{ mille atomic.Int64 }

// Percent returns how much of the keys was gone over, about.
func (p *Progress) Percent() int { return int(p.mille.Load() / 10) }

type progressKey struct{}

// WithProgress returns a context by which a Scan notes in p how far it is. That costs one DBSIZE for each server.
func WithProgress(ctx context.Context, p *Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// stretch is a part of a Scan: it begins when from thousandths of the whole are done, is of thousandths
// long, and goes over that many keys. A nil stretch notes nothing.
type stretch struct {
	to       *Progress
	from, of float64
	keys     int64
}

// stretchOf returns the stretch for the nth of so many servers.
func stretchOf(ctx context.Context, rdb *redis.Client, n, servers int) *stretch {
	p, _ := ctx.Value(progressKey{}).(*Progress)
	if p == nil {
		return nil
	}
	size, err := rdb.DBSize(ctx).Result()
	if err != nil {
		return nil // the user may not ask that
	}
	each := 1000 / float64(servers)
	return &stretch{to: p, from: float64(n) * each, of: each, keys: max(size, 1)}
}

// part returns the nth of so many parts of a stretch.
func (s *stretch) part(n, parts int) *stretch {
	if s == nil {
		return nil
	}
	each := s.of / float64(parts)
	return &stretch{to: s.to, from: s.from + float64(n)*each, of: each, keys: s.keys}
}

// at notes that so many keys of the stretch were gone over.
func (s *stretch) at(keys int64) {
	if s != nil {
		s.to.mille.Store(int64(s.from + s.of*min(1, float64(keys)/float64(s.keys))))
	}
}
