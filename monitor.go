// The Monitor: it reports locks that are held for too long.

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// MonitorOptions configures Monitor.
type MonitorOptions struct {
	// Pattern selects the names, in the syntax of SCAN. It is compared with the names as they are in Redis.
	// The default is all names.
	Pattern string
	// Threshold is how long a lock may be held, or a permit taken, before Monitor reports it. You must set
	// Threshold.
	Threshold time.Duration
	// Every is the length of one period. In each period Monitor looks at all locks once, and reports each
	// lock that has then been held for longer than Threshold. The default is 10 s.
	Every time.Duration
	// OnHeld is called once in each period for each lock that has been held for longer than Threshold. It
	// is also called for each semaphore with a permit that has been taken for longer than Threshold. If
	// OnHeld is nil, Monitor only counts such locks in its metric.
	OnHeld func(HeldLong)
	// OnError is called with the error if Monitor could not look at something in this period. If OnError is
	// nil, Monitor logs the error.
	OnError func(error)
}

// HeldLong is a lock that has been held for longer than the threshold. It may also be a semaphore with a
// permit that has been taken for longer than the threshold.
type HeldLong struct {
	Inspection // of the lock or the semaphore

	// Holder is the holder that has held the lock the longest, or the permit that has been taken the
	// longest.
	Holder Holder
	// Age is how long Holder has held the lock, or how long its permit has been taken.
	Age time.Duration
	// AgeKnown is true if Age counts from the grant. If AgeKnown is false, as for Java, readers and
	// permits, Age counts from when the Monitor first saw the holder. The Monitor may have seen the holder
	// long after the grant. Age may also be too long: if the same holder (in Java, the same thread)
	// released the lock and locked it again between two looks of the Monitor, Age counts from before that
	// second grant.
	AgeKnown bool
}

// String returns the report as one line, with shortened owners.
func (h HeldLong) String() string {
	about := "for"
	if !h.AgeKnown {
		about = "seen for"
	}
	return fmt.Sprintf("%s, %s %v by %v", h.Inspection, about, h.Age.Round(time.Millisecond), h.Holder)
}

// defaultEvery is the value of MonitorOptions.Every if it is 0.
const defaultEvery = 10 * time.Second

// Monitor looks at all locks whose names match, once in each period: mutexes, fair locks, read/write locks,
// leased permits, slots, elections, and the work of a Once. Locks that Java holds are included. If a lock
// has been held for longer than the threshold, Monitor reports it to OnHeld and to the metric
// holdfast.lock.long_held. Monitor never reports a free lock, a number in quarantine, or a member of Shards.
//
// Monitor runs on the caller's goroutine until ctx ends or the Client closes, and calls OnHeld and OnError
// on that goroutine. At the end it returns an error that matches ctx's error or ErrClosed. Monitor returns
// early if the Redis user may not look at the keys at all (ErrDenied), or if an option is wrong
// (ErrBadArgument).
//
// One Monitor for each Redis is enough, because it looks at all keys of that Redis in each period.
func (c *Client) Monitor(ctx context.Context, options MonitorOptions) error {
	if err := c.engine.Broken(); err != nil {
		return errs.Wrap("monitor", err)
	}
	if options.Every == 0 {
		options.Every = defaultEvery
	}
	if options.Threshold <= 0 || options.Every < 0 {
		return fmt.Errorf("holdfast: monitor: a threshold of %v, every %v: %w", options.Threshold, options.Every, ErrBadArgument)
	}
	ctx, cancel := c.untilClosed(ctx)
	defer cancel()
	m := monitor{client: c, options: options, sightings: make(map[sighting]time.Time)}
	turns := time.NewTicker(options.Every)
	defer turns.Stop()
	for {
		if err := m.look(ctx); err != nil {
			return errs.Wrap("monitor", err)
		}
		select {
		case <-turns.C:
		case <-ctx.Done():
			return errs.Wrap("monitor", context.Cause(ctx))
		}
	}
}

type monitor struct {
	client    *Client
	options   MonitorOptions
	sightings map[sighting]time.Time // when each was first seen, for those whose age is not known
}

// sighting is one holder of a lock, or one taken permit.
type sighting struct {
	name   string
	owner  Owner
	permit string
	write  bool
}

// look goes over all locks once. It returns an error if going on makes no sense.
func (m *monitor) look(ctx context.Context) error {
	seen, whole, unseen := make(map[sighting]time.Time), true, make(map[string]bool)
	for i, err := range m.client.InspectAll(ctx, m.options.Pattern) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if i.Name == "" && lastingly(err) {
				return err
			}
			whole, unseen[i.Name] = whole && i.Name != "", true
			m.failed(err)
			continue
		}
		m.judge(i, seen)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for s, since := range m.sightings {
		// A holder that was not seen may have been among the locks that could not be looked at.
		if _, ok := seen[s]; !ok && (!whole || unseen[s.name]) {
			seen[s] = since
		}
	}
	m.sightings = seen
	return nil
}

// judge notes the holders of a lock, and reports the lock if it has been held for too long.
func (m *monitor) judge(i Inspection, seen map[sighting]time.Time) {
	if i.Kind == KindShards {
		return // a member is one for as long as its process lives
	}
	var longest HeldLong
	for _, h := range i.Holders {
		if h.Quarantined {
			continue // nobody has it
		}
		first := m.since(sighting{i.Name, h.Owner, h.Permit, h.Write}, seen)
		held := HeldLong{Inspection: i, Holder: h, Age: time.Since(first)}
		if exclusive := h.Write || i.Kind != KindRWLock; exclusive && !i.HeldSince.IsZero() {
			held.Age, held.AgeKnown = i.At.Sub(i.HeldSince), true
		}
		if held.Age > longest.Age {
			longest = held
		}
	}
	if longest.Age <= m.options.Threshold {
		return
	}
	tel := m.client.engine.Telemetry
	tel.LongHeld(tel.Kind(string(i.Kind), i.Name))
	if m.options.OnHeld != nil {
		m.options.OnHeld(longest)
	}
}

func (m *monitor) since(s sighting, seen map[sighting]time.Time) time.Time {
	first, ok := m.sightings[s]
	if !ok {
		first = time.Now()
	}
	seen[s] = first
	return first
}

func (m *monitor) failed(err error) {
	if m.options.OnError != nil {
		m.options.OnError(err)
		return
	}
	m.client.engine.Log.Warn("holdfast: the monitor could not look at everything", "error", err)
}

// lastingly reports whether a retry would not help against an error of InspectAll.
func lastingly(err error) bool {
	return errors.Is(err, ErrDenied) || errors.Is(err, ErrBadArgument) || errors.Is(err, ErrClosed)
}
