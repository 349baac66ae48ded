// The options: how something is to be held.

package lease

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// DefaultLease is the length of a lease for which no option sets another: 30 s, renewed every 10 s.
// It is Redisson's lockWatchdogTimeout.
const DefaultLease = hold.DefaultLease

// MinLease is the shortest lease that is allowed: 100 ms.
const MinLease = hold.MinLease

// NoExpiry is what queries return as the remaining time of a hold without an end. Holdfast makes no
// such hold; Redisson can take a permit for ever.
const NoExpiry = hold.NoExpiry

// Option says how something is to be held. An Option given to New through WithDefaults applies to
// the whole Client. One given to a factory method applies to that one synchronizer.
type Option func(*hold.Settings)

// Renewed makes the lease d long. Holdfast renews it every third of d until it is released or lost.
// If the process dies, the lock is free after d at the latest. The default is
// Renewed(DefaultLease).
func Renewed(d time.Duration) Option {
	return func(s *hold.Settings) { s.Length, s.Fixed = d, false }
}

// Fixed makes the lease end d after it was granted, with ErrExpired. It is never renewed. That end
// is no loss: it is neither logged nor counted as one.
func Fixed(d time.Duration) Option {
	return func(s *hold.Settings) { s.Length, s.Fixed = d, true }
}

// MaxHold ends a renewed lease with ErrMaxHold when it has been held for d, as a safety net for a
// forgotten Release. The time counts from the sending of the request that was granted. If the
// answer takes longer than d, Lock gives the grant back, and its error matches ErrMaxHold. MaxHold
// is off by default, and if d is 0.
func MaxHold(d time.Duration) Option {
	return func(s *hold.Settings) { s.MaxHold = d }
}

// Grace makes the lease end d before Redis can grant what it holds to anybody else, so that the work
// has time to stop: its contexts, Done and Deadline come d sooner than without Grace. What is held
// stays held meanwhile, and Release frees it at once; of nested leases that ended together, the last Release frees
// it. If the process dies, the thing is free when it would have been without Grace. The lease is
// renewed every third of its length minus d. A waiter to which the thing is handed over asks Redis once
// more before its Lock returns. A Fixed(l) lease ends with ErrExpired after l minus d.
//
// There is no grace if Redis says that it no longer has what was held, nor after Close. The default is
// 0. If less than MinLease is left of the lease, or d is negative, Lock fails with ErrBadArgument.
func Grace(d time.Duration) Option {
	return func(s *hold.Settings) { s.Grace = d }
}

// Notified makes the Client notify the holder of a Mutex, a FairMutex or a stripe when any Client takes it by
// ForceRelease: the lease then ends with ErrLost within a round trip or two, not only at its next renewal. A message
// makes the Client ask Redis; if the message is lost, the next renewal finds out. Each such hold costs a goroutine, one
// more renewal when it begins, and a subscription on the Client's one connection for messages. A nested Lock has
// the option if the outer one has it. Other kinds ignore the option. The default is off.
func Notified() Option {
	return func(s *hold.Settings) { s.Notified = true }
}

// Supersede makes the newest Lock of a Mutex, a FairMutex or a stripe win, if all that lock the name have the option.
// It is for the deploy of the latest commit, or a reload after each change. When a newer Lock comes, the holder's lease
// ends with ErrSuperseded. The newer Lock is granted when the holder, whose work has stopped, releases the lock; at the
// latest after the holder's Grace or, without one, after the rest of its lease. Older Locks that wait return
// ErrSuperseded, each when it is its turn.
//
// A Lock that fails is no longer the newest. But if its process dies while it waits, the older ones are superseded all
// the same. A TryLock supersedes nobody; when it is granted, it counts as the newest. Ask supersedes nobody either. A
// holder without the option is not superseded, nor is a lease from Attach. A nested Lock has the option if the outer
// one has it; the hold then has a Grace if each of its leases has one. A MultiLock locks its members one after another,
// and so supersedes at different times. Do with Pausable fails with ErrBadArgument.
//
// Each Lock costs two more requests. Each hold costs a goroutine, a subscription on the Client's one connection for
// messages, and a request every 1.25 s, in case the message is lost. Such a lock is not passed on within the process
// (see Cohort). Other kinds ignore the option. The default is off.
func Supersede() Option {
	return func(s *hold.Settings) { s.Supersede = true }
}

// Replicas makes a grant count only if n replicas of the master acknowledge it within half a
// second. Otherwise the grant is taken back, and the error matches ErrNotReplicated. A renewal that
// fewer replicas acknowledge does not prolong the lease here, and is tried again until the lease is
// over. So a grant survives the failure of the master, if a replica that has it is promoted. The
// default is 0: Holdfast does not wait for replicas. See docs/guarantees.md.
func Replicas(n int) Option {
	return func(s *hold.Settings) { s.Replicas = n }
}

// JavaTokens shares the fencing tokens of a name with Redisson's RFencedLock: the token's key gets
// no expiry. Without JavaTokens, the key expires a week after the last grant, or as WithTokenLife
// says; the next token is greater all the same. A name whose braces make no hash tag ("a}b", "a{",
// "{}x") is refused with ErrBadArgument, because Redisson would count its tokens in another place.
func JavaTokens() Option {
	return func(s *hold.Settings) { s.JavaTokens = true }
}

// Cohort bounds how a Mutex is passed on within a process. Without asking Redis, a Release gives it
// to the process's next waiting goroutine, at most n times and for at most d after Redis has
// granted it. Then it is the turn of other processes. Each of these goroutines gets its own Lease
// and token. The default is 1000 times, 10 ms. While other processes want the Mutex too, the bound
// is also 8 times the number of the process's goroutines that want it, so that a goroutine that is
// alone in its process gets its share: see docs/guarantees.md.
//
// If n or d is 0, each Release goes to Redis. Each Release also goes to Redis if the lease is fixed
// or has Replicas, if less than half of it is left, if the next waiter has other options, and while
// programs without Holdfast wait, such as Java's. n is at most 1000.
func Cohort(n int, d time.Duration) Option {
	return func(s *hold.Settings) { s.LocalHandoffs, s.CohortTime = n, d }
}
