// Onces: lanes ask for the results of keys that come and go with the time, and an oracle counts how
// often the work of each key has had its effect.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/once"
)

const (
	kept = "result kept" // how the work of a Once ends if nothing goes wrong

	// keyEvery is how long a key is the newest one, and keysBack is how many of the older ones are asked for too. Their
	// results are kept for longer than that.
	keyEvery = 25 * time.Millisecond
	keysBack = 400
	keepFor  = time.Hour
	// askEvery is the longest pause of a lane between two keys.
	askEvery = 5 * time.Millisecond

	// waking is how long after its process stood still work may not know yet that its lease is over.
	waking = 100 * time.Millisecond
)

// errFailed is the error of work that fails.
var errFailed = errors.New("the work has failed")

// runOnce asks for one key after the other until ctx ends.
func (l *lane) runOnce(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.askOnce(ctx); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
		time.Sleep(time.Duration(l.rand.Int64N(int64(askEvery))))
	}
	return nil
}

// askOnce asks for the result of a key. If the lane is to do the work, that is a hold of the key, and
// its effect is a write to the key's register.
func (l *lane) askOnce(ctx context.Context) error {
	name := fmt.Sprintf("%s-%d", l.kind, l.rand.IntN(l.names))
	number := time.Now().UnixNano() / int64(keyEvery)
	if l.rand.IntN(2) == 0 {
		number -= l.rand.Int64N(keysBack)
	}
	key := strconv.FormatInt(number, 10)
	object := name + "." + key
	waiting, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	o := l.ways.clients[0].Once(name, once.Keep(keepFor), once.Lease(lease.Renewed(l.ways.lease)))
	w := onceWork{call: time.Now()}
	value, err := once.Value(waiting, o, key, func(ctx context.Context) (int64, error) {
		w.hold = l.hold(object, w.call, true, taking{amount: 1, renewed: true}, underOnce{ctx}, once.Token(ctx))
		defer func() { w.left = time.Now() }()
		return w.do()
	})
	if broken := w.report(err); w.broken != nil || broken != nil {
		return cmp.Or(w.broken, broken)
	}
	if err == nil {
		return l.tell(note{Topic: told, Lane: l.name, Object: object, Token: value})
	}
	if w.hold == nil {
		return l.missed(ctx, object, err)
	}
	return nil
}

// underOnce is the grant that the work of a Once has.
type underOnce struct{ ctx context.Context }

func (u underOnce) Context(context.Context) context.Context { return u.ctx }
func (u underOnce) Deadline() time.Time                     { return time.Time{} }
func (u underOnce) Release(context.Context) error           { return nil } // Value releases it

// onceWork is one call for a key, and the work if the caller is to do it.
type onceWork struct {
	hold       *holdUnderWay // nil: it was not to do it
	entered    bool
	call, left time.Time // Value was called, and the work returned
	broken     error     // the referee cannot be reached
}

// do does the work. It may fail before its effect or, less often, after it.
func (w *onceWork) do() (token int64, err error) {
	h := w.hold
	read, entered, err := h.enter()
	w.entered = entered
	if err == nil && entered {
		err = h.idle(h.length(), shortBeat)
	}
	fails := h.rand.IntN(50)
	taken := false
	if err == nil && entered && fails > 1 {
		taken, err = h.write(read)
	}
	if err == nil && taken {
		err = h.idle(h.length(), shortBeat)
	}
	if err == nil {
		err = h.claimLast(entered)
	}
	if w.broken = err; err != nil || !taken || fails == 2 {
		return 0, errFailed
	}
	return h.token, nil
}

// report reports how the work ended, by the error of Value.
func (w *onceWork) report(err error) error {
	if w.hold == nil {
		return nil
	}
	ending := endingOf(err)
	switch err {
	case nil:
		ending = kept
	case errFailed:
		ending = released
	}
	return w.hold.report(w.entered, w.left, ending, err)
}

// result records that a caller of a Once had that result.
func (o *object) result(lane string, n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.got == nil {
		o.got = map[int64]string{}
	}
	o.got[n.Token] = lane
}

// onceReport counts how often the work of the keys was done.
type onceReport struct {
	Keys, Effects int
	Again         map[string]int // effects after another on their key, by what explains them
}

func (r *onceReport) add(other onceReport) {
	r.Keys += other.Keys
	r.Effects += other.Effects
	addCounts(&r.Again, other.Again)
}

// once judges the record of one key: each effect after another must be explained, and all callers have
// one result.
func (v *verdict) once(o *object, forgets windows, lease time.Duration) {
	effects := slices.DeleteFunc(slices.Clone(o.holds), func(h *hold) bool { return !h.wrote })
	slices.SortFunc(effects, func(a, b *hold) int { return cmp.Compare(a.token, b.token) })
	v.Once.Keys++
	v.Once.Effects += len(effects)
	for i := 1; i < len(effects); i++ {
		first, again := effects[i-1], effects[i]
		why := v.doneAgain(first, again, forgets, lease)
		if why == "" {
			v.violate("%s was done by %s, whose work ended with %q, and again by %s, and nothing explains it",
				o.name, first.lane, first.ending, again.lane)
			continue
		}
		addCounts(&v.Once.Again, map[string]int{why: 1})
	}
	for token, lane := range o.got {
		if !slices.ContainsFunc(effects, func(h *hold) bool { return h.token == token }) {
			v.violate("%s had the result %d of %s, which no work has made", lane, token, o.name)
		}
	}
	if len(o.got) > 1 && !forgets.excuse(effects) {
		v.violate("%s has the results %v", o.name, slices.Sorted(maps.Keys(o.got)))
	}
}

// doneAgain returns the documented case in which work whose effect was there is done again; "" if there
// is none.
func (v *verdict) doneAgain(first, again *hold, forgets windows, lease time.Duration) string {
	switch {
	case forgets.excuse([]*hold{first, again}):
		return "Redis had lost its data"
	case first.ending == gone:
		return "its process was killed before the result was written"
	case first.ending == released:
		return "the work failed after its effect"
	case first.ending == kept:
		return ""
	}
	from := first.last - int64(lease)
	if v.shadow.meet(from, again.enter) || v.starved(first.lane, from, again.enter) >= lease/4 {
		return "its process stood still, or could not reach Redis, for longer than the lease: " + first.ending
	}
	return ""
}

// stoodStill reports whether one of the holds was claimed just after its process stood still for so long that its
// lease may have been over in Redis. Work under a Once or on a shard does not know when its lease ends, so its first
// moments may be claimed after that.
func (v *verdict) stoodStill(holds []*hold, lease time.Duration) bool {
	return slices.ContainsFunc(holds, func(h *hold) bool {
		return slices.ContainsFunc(joined(v.stood[processOf(h.lane)]), func(s span) bool {
			return time.Duration(s.to-s.from) >= margin(lease) && s.from < h.last && h.last-int64(waking) < s.to
		})
	})
}
