// Queries of the lock, and its release by force.

package rwlock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Locked reports whether a writer holds the lock. Like all queries, it asks the master.
func (m *RWMutex) Locked(ctx context.Context) (bool, error) {
	locked, _, err := m.look(ctx, "query", "")
	return locked, err
}

// RLocked reports whether a reader holds the lock. If a writer also holds the read side, it counts as a
// reader too. Readers whose lease is over do not count, even if Redis still lists them.
func (m *RWMutex) RLocked(ctx context.Context) (bool, error) {
	rlocked := false
	_, err := m.walk(ctx, "query", func(h holder) bool {
		rlocked = rlocked || !h.writes
		return !rlocked
	})
	return rlocked, err
}

// ReadHolds returns how many leases all readers together have on the lock. Like RHolders, it reads the list
// of readers in several requests.
func (m *RWMutex) ReadHolds(ctx context.Context) (int, error) {
	holds := 0
	_, err := m.walk(ctx, "query", func(h holder) bool {
		if !h.writes {
			holds += h.count
		}
		return true
	})
	return holds, err
}

// HeldBy reports whether owner is the writer. owner may belong to this process or to another.
func (m *RWMutex) HeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.HoldCount(ctx, owner)
	return count > 0, err
}

// RHeldBy reports whether owner is a reader. owner may belong to this process or to another.
func (m *RWMutex) RHeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.RHoldCount(ctx, owner)
	return count > 0, err
}

// HoldCount returns how many leases owner has as the writer. It returns 0 if owner is not the writer.
func (m *RWMutex) HoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	_, count, err := m.look(ctx, "query", owner.String()+writes)
	return count, err
}

// RHoldCount returns how many leases owner has as a reader. It returns 0 if owner is not a reader.
func (m *RWMutex) RHoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	_, count, err := m.look(ctx, "query", owner.String())
	return count, err
}

// Holder returns the owner that holds the lock as its writer, or the zero Owner if there is no writer. If
// the writer's id cannot be parsed as an Owner, the error matches ErrBadArgument.
func (m *RWMutex) Holder(ctx context.Context) (lease.Owner, error) {
	id, err := m.writer(ctx, "query")
	if err != nil || id == "" {
		return lease.Owner{}, err
	}
	return lease.ParseOwner(id)
}

// RHolders returns the owners that hold the lock as readers, in no order. If the id of a reader cannot be
// parsed as an Owner, the error matches ErrBadArgument.
//
// RHolders asks Redis for about 256 readers at a time, so that Redis can serve other requests in between. A
// reader that holds the lock during the whole call is in the list once. A reader that comes or goes during
// the call may be in the list or not. If there is a failover during the call, some readers may be missing.
func (m *RWMutex) RHolders(ctx context.Context) ([]lease.Owner, error) {
	ids, err := m.readers(ctx, "query")
	if err != nil {
		return nil, err
	}
	var all []lease.Owner
	for _, id := range ids {
		owner, err := lease.ParseOwner(id)
		if err != nil {
			return nil, err
		}
		all = append(all, owner)
	}
	return all, nil
}

// Remaining returns how long the lock stays held if nobody renews or releases it. It returns 0 if nobody
// holds the lock, and lease.NoExpiry if a hold has no end. Like RHolders, it reads the list of readers in
// several requests.
func (m *RWMutex) Remaining(ctx context.Context) (time.Duration, error) {
	until, endless := int64(0), false
	now, err := m.walk(ctx, "query", func(h holder) bool {
		until, endless = max(until, h.until), endless || h.until == noEnd
		return !endless
	})
	if endless {
		return lease.NoExpiry, err
	}
	return time.Duration(max(until-now, 0)) * time.Microsecond, err
}

// ForceRelease takes the lock away from its writer and notifies the waiters. Readers keep the lock. If from
// names owners, and the writer is another, for example because the lock has changed hands since Holder or
// Inspect, ForceRelease changes nothing. Without owners, it takes the lock from any writer. ForceRelease
// reports whether it found such a writer. The writer's leases end with ErrLost: at once if they are of this
// Client, otherwise at their next renewal.
//
// The writer's work may still be going on. Call ForceRelease only if you know that the work has stopped.
func (m *RWMutex) ForceRelease(ctx context.Context, from ...lease.Owner) (bool, error) {
	id, err := m.writer(ctx, "force release")
	if err != nil || id == "" || !hold.Among(from)(id) {
		return false, err
	}
	return m.force(ctx, m.writing(), releaseScript, []string{id})
}

// RForceRelease takes the lock away from all readers that RHolders would return, or from those of them that
// from names. A writer keeps the lock. RForceRelease reports whether it found such a reader. Otherwise it is
// like ForceRelease.
func (m *RWMutex) RForceRelease(ctx context.Context, from ...lease.Owner) (bool, error) {
	ids, err := m.readers(ctx, "force release")
	if err != nil {
		return false, err
	}
	meant := hold.Among(from)
	ids = slices.DeleteFunc(ids, func(id string) bool { return !meant(id) })
	return m.force(ctx, m.reading(), rreleaseScript, ids)
}

// force releases holders by their ids. So if a reply is lost and the call is sent again, an owner
// that got the lock meanwhile keeps it.
func (m *RWMutex) force(ctx context.Context, side hold.Resource, release *conn.Script, ids []string) (bool, error) {
	if len(ids) == 0 {
		return false, nil
	}
	publish, err := m.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, hold.OpError("force release", side, err)
	}
	for _, id := range ids {
		if err := m.engine.Conn.Run(ctx, m.base.release(release, id, publish)); err != nil {
			return false, hold.OpError("force release", side, err)
		}
		m.engine.EndHeld(m.base.Key(), id, errs.Lost)
	}
	return true, nil
}

// writes is what the field of a writer ends with.
const writes = ":write"

// pageSize is about how many fields of the lock one call looks at. That takes the server two or
// three milliseconds.
const pageSize = 256

// noEnd stands for the end of a hold that has none.
const noEnd = -1

// holder is one holder of the lock.
type holder struct {
	field  string
	id     string
	writes bool
	count  int
	until  int64 // on the server's clock, in microseconds, or noEnd
}

// look asks whether a writer holds the lock, and for the count of the holder with that field. Its
// cost does not grow with the number of readers.
func (m *RWMutex) look(ctx context.Context, op, field string) (locked bool, count int, err error) {
	if err := m.usable(); err != nil {
		return false, 0, m.fail(op, err)
	}
	call := m.base.call(lookScript, m.base.at.Timeouts, field)
	if err := m.engine.Conn.Run(ctx, call); err != nil {
		return false, 0, m.fail(op, err)
	}
	locked, count = lookIn(call)
	return locked, count, nil
}

// walk goes over the holders of the lock, a page at a time, for as long as more returns
// true. It returns the server's clock at the last page.
func (m *RWMutex) walk(ctx context.Context, op string, more func(holder) bool) (now int64, err error) {
	if err := m.usable(); err != nil {
		return 0, m.fail(op, err)
	}
	seen := make(map[string]bool) // a scan may return a field twice
	for cursor := "0"; ; {
		call := m.base.call(stateScript, m.base.at.Timeouts, cursor, pageSize)
		if err := m.engine.Conn.Run(ctx, call); err != nil {
			return now, m.fail(op, err)
		}
		var holders []holder
		now = call.ServerTime()
		holders, cursor = holdersIn(call)
		for _, h := range holders {
			if seen[h.field] {
				continue
			}
			seen[h.field] = true
			if !more(h) {
				return now, nil
			}
		}
		if cursor == "0" {
			return now, nil
		}
	}
}

// writer returns the id of the lock's writer, "" if it has none.
func (m *RWMutex) writer(ctx context.Context, op string) (id string, err error) {
	if locked, _, err := m.look(ctx, op, ""); err != nil || !locked {
		return "", err // without going over the readers
	}
	_, err = m.walk(ctx, op, func(h holder) bool {
		if h.writes {
			id = h.id
		}
		return !h.writes
	})
	return id, err
}

// readers returns the ids of the lock's readers.
func (m *RWMutex) readers(ctx context.Context, op string) (ids []string, err error) {
	_, err = m.walk(ctx, op, func(h holder) bool {
		if !h.writes {
			ids = append(ids, h.id)
		}
		return true
	})
	return ids, err
}
