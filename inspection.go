// What Inspect finds at a name.

package holdfast

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// Kind is what an Inspection found at a name. Redis does not record what a key is for, so
// Inspect infers the Kind from the key's type and from the keys beside it.
type Kind string

// The kinds.
const (
	// KindFree: nothing is held there. A free lock leaves no trace of its kind.
	KindFree Kind = "free"
	// KindMutex: a lock that is held or waited for. Mutex and FairMutex are one
	// lock in Redis.
	KindMutex Kind = "mutex"
	// KindRWLock: a read/write lock that is held or waited for.
	KindRWLock Kind = "rwlock"
	// KindLeader: an election with a leader, or with candidates that wait.
	KindLeader Kind = "leader"
	// KindOnce: a key of a Once, at the name "<name of the Once>:<key>": see State. In the key "%" is
	// written "%25" and ":" is written "%3A".
	KindOnce Kind = "once"
	// KindBarrier: a barrier that was used within a day: see State.
	KindBarrier Kind = "barrier"
	// KindSlots: numbered slots, some of which are taken.
	KindSlots Kind = "slots"
	// KindShards: shards, some members of which are alive.
	KindShards Kind = "shards"
	// KindLimiter: a limit that is not full, because something was taken. The limit of a key is at the name
	// "<name>:<key>", with "%" and ":" in the key written as for a Once.
	KindLimiter Kind = "limiter"
	// KindPermits: a semaphore with leased permits, some of which are taken.
	KindPermits Kind = "permits"
	// KindSemaphore: a semaphore whose permits Holdfast has set, and has taken or added within a
	// week.
	KindSemaphore Kind = "semaphore"
	// KindLatch: a latch that Holdfast has used within a day.
	KindLatch Kind = "latch"
	// KindCount: a whole number. It may be a semaphore or a latch of Redisson's, a semaphore whose leased
	// permits are all free, or a number of another program. In Redis they look alike.
	KindCount Kind = "count"
	// KindUnknown: something that is not a synchronizer.
	KindUnknown Kind = "unknown"
)

// NoExpiry is the remaining time of a hold that has no end.
const NoExpiry = lease.NoExpiry

// Inspection is the state of a name at one instant.
type Inspection struct {
	// Name is the name that Inspect was given, or, from InspectAll, the name as it is in Redis, without
	// the prefix of WithKeyPrefix.
	Name string
	Kind Kind
	// At is the instant of the inspection, on the server's clock.
	At time.Time

	// Holders are the holders of a mutex or a read/write lock; the leader of a KindLeader; who does the work of a
	// KindOnce; the holders of a KindSlots, in the order of their numbers; the members of a KindShards; and the taken
	// permits of a KindPermits, without their owners, which Redis does not know. Readers and permits whose lease is
	// over are left out. Redis does not know the holders of a latch or of a semaphore without leases.
	Holders []Holder
	// HeldSince is when the hold of a lock's only holder, or of a writer, began, on the server's clock. It is
	// zero if that is not known. It is known if the holder is a Client of Holdfast and its fencing token
	// agrees with the time at which the token was written. It is not known for Java, which leaves no token;
	// for readers; after a clock was set back; for a hold of a Client with another WithTokenLife; and for a
	// lock that has been held, by renewals, for longer than its Client's WithTokenLife, 7 days by default. If
	// such a lock is then passed on by Detach and Attach, HeldSince counts from the Attach.
	HeldSince time.Time
	// Remaining is how long this state lasts if nobody renews or releases anything; 0 if the
	// name is free. For permits it is the time until the last of the taken permits runs out.
	// NoExpiry means without end.
	Remaining time.Duration
	// Waiters is how many waiters of Holdfast there are; Java's waiters are not seen. For a
	// mutex it counts each waiter of a FairMutex, and one for each process that has waiters of
	// a Mutex; for a leader, the candidates; for slots, the processes; for a barrier, the parties that have
	// come. It is -1 if it is not known, as for every other kind.
	Waiters int
	// Queue lists the first hundred of the Waiters. Those of a mutex or of an election are in the order in
	// which they are served; those of a read/write lock or of slots, and the parties of a barrier, in the
	// order in which they came.
	Queue []Waiter

	// Value is the number of a KindCount; the count of a latch; how many permits of a KindSemaphore or a KindPermits,
	// or numbers of a KindSlots, are free; how many shards nobody has; how many units of a KindLimiter can be taken at
	// once (-3: callers wait for 3); or how many parties of a barrier have come.
	Value int64
	// All is the total of the permits of a KindSemaphore, the numbers of a KindSlots, the shards of a KindShards or
	// the parties of a barrier; or the burst of a KindLimiter. It is 0 if that is not known.
	All int64
	// State of a KindOnce is "working"; "done", if its result is kept; or "failed", if its error is kept. For a
	// KindBarrier it is the state of the last generation: "open", "tripped" or "broken". For a KindMutex it is
	// "asked" if its holder was asked for it, by Ask. Otherwise it is "".
	State string
	// Paused is the pause of the name, or nil: see Client.Pause. A name of any kind may be paused, a free one too.
	Paused *Pause
	// Taken is how many permits of a KindPermits, or numbers of a KindSlots, are taken or in quarantine; or how
	// many shards of a KindShards somebody has.
	Taken int
}

// Holder is one holder of a lock, or one taken permit.
type Holder struct {
	// Owner is the owner of the hold. It is zero for a permit, whose owner Redis does not know.
	// The owner's String is a secret, its Short is not.
	Owner Owner
	// Who is the identity that the holder's Client has by WithIdentity; if it has none, that of a leader by
	// leader.Identity, or of a member of shards by shards.Identity. It is "" if there is none, or if it could not be
	// read.
	Who string
	// Note is what the holder says about its work, by Lease.Note, or "".
	Note string
	// Permit is the id of a permit, as PermitSemaphore.IDs has it; it is empty for a lock.
	// Anyone with the id can release the permit, so Permit is left out of JSON, and of logs.
	Permit string `json:"-"`
	// Count is the number of leases on the hold; of a member of a KindShards, how many shards it has.
	Count int
	// Write is true if the holder has the write side of a read/write lock.
	Write bool
	// Number is the number that the holder of a KindSlots has; 0 for other kinds.
	Number int
	// Quarantined is true for a number of a KindSlots that its holder has lost and that nobody may get
	// yet.
	Quarantined bool
	// Shards says which shards a member of a KindShards has: "0-3 7". It is "" for other kinds.
	Shards string
	// Remaining is how long the hold lasts if the holder neither renews nor releases it, or until a
	// quarantine ends. NoExpiry means without end.
	Remaining time.Duration
}

// String returns the holder in a form that may be logged, with a shortened owner or permit.
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

// Waiter is one element of a Queue.
type Waiter struct {
	// Owner is the owner that waits. For a Mutex it stands for all waiters of its process.
	Owner Owner
	// Who is the identity of the waiter: see Holder.Who.
	Who string
	// Since is when the owner got its place, on the server's clock; zero if that is not known, for example for a
	// barrier. A waiter of a FairMutex seems to have come 10 s earlier for each step of its priority.
	Since time.Time
	// Write is true if the owner waits for the write side of a read/write lock.
	Write bool
}

// String returns the waiter in a form that may be logged, with a shortened owner.
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
