// What Inspect finds at a name.

package holdfast

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// Kind is what Inspect has found at a name. Redis does not record what a key is for. So Inspect infers the
// Kind from the type of the key and from the other keys of the same name.
type Kind string

// The kinds.
const (
	// KindFree: nobody holds anything at the name. A free lock leaves no trace of its kind.
	KindFree Kind = "free"
	// KindMutex: a lock that somebody holds or waits for. In Redis, a Mutex and a FairMutex of the same
	// name are one lock.
	KindMutex Kind = "mutex"
	// KindRWLock: a read/write lock that somebody holds or waits for.
	KindRWLock Kind = "rwlock"
	// KindLeader: an election that has a leader, or candidates that wait.
	KindLeader Kind = "leader"
	// KindOnce: the work of one key of a Once. Inspection.State says how far the work is. The inspected
	// name is "<name of the Once>:<key>"; in this key "%" is written "%25", and ":" is written "%3A".
	KindOnce Kind = "once"
	// KindBarrier: a barrier that was used within the last day. Inspection.State says whether its last
	// generation is open, or how it ended.
	KindBarrier Kind = "barrier"
	// KindSlots: numbered slots, at least one of which is taken.
	KindSlots Kind = "slots"
	// KindShards: shards that have at least one live member.
	KindShards Kind = "shards"
	// KindLimiter: a rate limit that is not full, because units were taken from it. The limit that
	// Limiter.For(key) returns is at the name "<name of the Limiter>:<key>"; in this key "%" is written
	// "%25", and ":" is written "%3A".
	KindLimiter Kind = "limiter"
	// KindPermits: a semaphore with leased permits, at least one of which is taken.
	KindPermits Kind = "permits"
	// KindSemaphore: a semaphore whose number of permits Holdfast has set, and whose permits Holdfast has
	// taken or added within the last week.
	KindSemaphore Kind = "semaphore"
	// KindLatch: a latch that Holdfast has used within the last day.
	KindLatch Kind = "latch"
	// KindCount: a whole number. It may be a semaphore or a latch of Redisson, a semaphore whose leased
	// permits are all free, or a number of another program. In Redis all of these look alike.
	KindCount Kind = "count"
	// KindUnknown: a key that is not a synchronizer.
	KindUnknown Kind = "unknown"
)

// NoExpiry is the remaining time of a hold that never expires.
const NoExpiry = lease.NoExpiry

// Inspection is the state of a name at one instant.
type Inspection struct {
	// Name is the name that Inspect was given. In a result of InspectAll, Name is the name as it is in
	// Redis, without the prefix of WithKeyPrefix.
	Name string
	Kind Kind
	// At is the instant of the inspection, on the server's clock.
	At time.Time

	// Holders lists who holds the name. For a mutex or a read/write lock these are its holders; for
	// KindLeader, the leader; for KindOnce, the owner that does the work; for KindSlots, the holders in the
	// order of their numbers; for KindShards, the members. For KindPermits, Holders lists the taken permits
	// without their owners, because Redis does not know the owners. Readers and permits whose lease is over
	// are left out. For a latch, and for a semaphore without leases, Holders is empty.
	Holders []Holder
	// HeldSince is when the lock's only holder, or its writer, got the lock, on the server's clock. It is
	// zero if that time is not known. It is known if the holder is a Client of Holdfast and its fencing
	// token agrees with the time at which the token was written. It is not known for Java, which leaves no
	// token; for readers; after a clock was set back; for a holder whose Client has another WithTokenLife
	// than this Client; and for a lock that was held, by renewals, for longer than the WithTokenLife of its
	// Client, 7 days by default. If a lock that was held for so long is passed on by Detach and Attach,
	// HeldSince counts from the Attach.
	HeldSince time.Time
	// Remaining is how long this state lasts if nobody renews or releases anything. For permits it is the
	// time until the last of the taken permits runs out. Remaining is 0 if the name is free, and NoExpiry
	// if the state has no end.
	Remaining time.Duration
	// Waiters is how many waiters of Holdfast there are. Java's waiters are not counted. For a mutex, each
	// waiter of a FairMutex counts as one, and all waiters of a Mutex in one process count as one. For a
	// read/write lock, about one waiter of each process counts. For slots, each process that waits counts
	// as one. For a leader, Waiters counts the candidates; for a barrier, the parties that have come. For
	// every other kind, and if the number is not known, Waiters is -1.
	Waiters int
	// Queue lists the first hundred Waiters. For a mutex or an election, the waiters are in the order in
	// which they will be served. For a read/write lock, for slots and for a barrier, they are in the order
	// in which they came.
	Queue []Waiter

	// Value depends on the Kind. For KindCount and KindLatch it is the count. For KindSemaphore,
	// KindPermits and KindSlots it is how many permits or numbers are free. For KindShards it is how many
	// shards have no owner. For KindLimiter it is how many units can be taken now; -3 means that callers
	// wait for 3 units. For KindBarrier it is how many parties have come.
	Value int64
	// All is how many permits a KindSemaphore has in all, how many numbers a KindSlots, how many shards a
	// KindShards, or how many parties a KindBarrier. For KindLimiter it is the burst. All is 0 if it is not
	// known.
	All int64
	// State is set for three kinds. For KindOnce it is "working" during the work, "done" if the result is
	// kept, or "failed" if the error is kept. For KindBarrier it is the state of the last generation:
	// "open", "tripped" or "broken". For KindMutex it is "asked" if somebody has called Ask and the holder
	// still holds the lock. Otherwise State is "".
	State string
	// Paused is the pause of the name, or nil if the name is not paused: see Client.Pause. A name of any
	// kind may be paused, also a free name.
	Paused *Pause
	// Taken is how many permits of a KindPermits are taken, how many numbers of a KindSlots are taken or in
	// quarantine, or how many shards of a KindShards have an owner.
	Taken int
}

// Holder is one holder of a lock, or one taken permit.
type Holder struct {
	// Owner is the owner of the hold. It is zero for a permit, because Redis does not know the owner of a
	// permit. Owner.String returns a secret; Owner.Short does not.
	Owner Owner
	// Who is the identity that WithIdentity has given to the holder's Client. If there is none, Who is the
	// identity that leader.Identity has given to a leader, or shards.Identity to a member of shards. Who is
	// "" if there is no identity, or if it could not be read.
	Who string
	// Note is what the holder says about its work by Lease.Note. It is "" if the holder has set no Note.
	Note string
	// Permit is the id of a permit, as PermitSemaphore.IDs returns it. Permit is empty for a lock. Anyone
	// who knows the id can release the permit, so JSON and logs leave Permit out.
	Permit string `json:"-"`
	// Count is the number of leases on the hold. For a member of a KindShards it is the number of its
	// shards.
	Count int
	// Write is true if the holder has the write side of a read/write lock.
	Write bool
	// Number is the number that the holder of a KindSlots has. It is 0 for other kinds.
	Number int
	// Quarantined is true if the holder of a KindSlots has lost its number and nobody can get that number
	// yet.
	Quarantined bool
	// Shards lists the shards that a member of a KindShards has, for example "0-3 7". It is "" for other
	// kinds.
	Shards string
	// Remaining is how long the hold lasts if the holder neither renews nor releases it. If the number is
	// in quarantine, Remaining is the time until the quarantine ends. NoExpiry means that the hold has no
	// end.
	Remaining time.Duration
}

// String returns the holder as text that may be logged, with a shortened owner or permit.
func (h Holder) String() string {
	text := h.Owner.Short()
	if h.Permit != "" {
		text = "permit " + h.Permit[:min(8, len(h.Permit))]
	}
	if h.Who != "" {
		text += fmt.Sprintf(" %q", h.Who)
	}
	if h.Note != "" {
		text += fmt.Sprintf(": %q", h.Note)
	}
	if h.Write {
		text += " (write)"
	}
	if h.Quarantined {
		text += " (quarantined)"
	}
	if h.Count != 1 {
		text += fmt.Sprintf(" x%d", h.Count)
	}
	return text
}

// Waiter is one element of Inspection.Queue.
type Waiter struct {
	// Owner is the owner that waits. A Mutex has only one Waiter for each process, even if several
	// goroutines wait.
	Owner Owner
	// Who is the identity of the waiter: see Holder.Who.
	Who string
	// Since is when the owner joined the queue, on the server's clock. It is zero if that is not known, for
	// example for a barrier. If the waiter of a FairMutex has a priority, Since is 10 s too early for each
	// step of the priority.
	Since time.Time
	// Write is true if the owner waits for the write side of a read/write lock.
	Write bool
}

// String returns the waiter as text that may be logged, with a shortened owner.
func (w Waiter) String() string {
	return Holder{Owner: w.Owner, Who: w.Who, Write: w.Write, Count: 1}.String()
}

// String returns the inspection as one line, with shortened owners.
func (i Inspection) String() string {
	text := fmt.Sprintf("%s: %s%s", errs.Quote(i.Name), i.Kind, i.counts())
	if len(i.Holders) > 0 && i.Kind != KindPermits && i.Kind != KindSlots {
		text += fmt.Sprintf(", held by %v", i.Holders)
	}
	if !i.HeldSince.IsZero() {
		text += fmt.Sprintf(" for %v", i.At.Sub(i.HeldSince))
	}
	if i.Remaining > 0 {
		text += fmt.Sprintf(", %v left", i.Remaining)
	}
	if i.Waiters > 0 {
		text += fmt.Sprintf(", %d waiting", i.Waiters)
	}
	if len(i.Queue) > 0 {
		text += fmt.Sprintf(", %v first", i.Queue[0])
	}
	return text
}

// counts returns the part of String with the numbers and the State that the inspection's Kind has.
func (i Inspection) counts() string {
	switch i.Kind {
	case KindCount, KindLatch:
		return fmt.Sprintf(" %d", i.Value)
	case KindSemaphore, KindSlots, KindShards, KindLimiter:
		return fmt.Sprintf(", %d of %d free", i.Value, i.All)
	case KindPermits:
		return fmt.Sprintf(", %d free, %d taken", i.Value, i.Taken)
	case KindBarrier, KindOnce:
		if i.All > 0 {
			return fmt.Sprintf(" %s, %d of %d have come", i.State, i.Value, i.All)
		}
		return " " + i.State
	default:
		return ""
	}
}
