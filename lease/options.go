// The options: how something is to be held.

package lease

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// DefaultLease is the length of a lease if no option sets another length: 30 s. A lease of this length
// is renewed every 10 s. DefaultLease corresponds to Redisson's lockWatchdogTimeout.
const DefaultLease = hold.DefaultLease

// MinLease is the shortest lease that is allowed: 100 ms.
const MinLease = hold.MinLease

// NoExpiry is the remaining time that queries return for a hold that has no end. Holdfast never makes
// such a hold, but Redisson can take a permit for ever.
const NoExpiry = hold.NoExpiry

// Option says how something is held. If an Option is given to New by WithDefaults, it applies to the
// whole Client. If an Option is given to a factory method, such as Client.Mutex, it applies only to the
// synchronizer that this call returns.
type Option func(*hold.Settings)

// Renewed makes the lease d long. Holdfast renews the lease every third of d until the lease is released
// or lost. If the process dies, the lock is free after at most d, or after what is left of a waiter's place
// in the queue, which is less than 2.5 s (of a FairMutex 5 s). The default is Renewed(DefaultLease).
func Renewed(d time.Duration) Option {
	return func(s *hold.Settings) { s.Length, s.Fixed = d, false }
}

// Fixed makes the lease end d after its grant, with ErrExpired. Holdfast never renews a fixed lease. Its
// end does not count as a loss: Holdfast neither logs the end nor counts it in the metric of lost
// leases.
func Fixed(d time.Duration) Option {
	return func(s *hold.Settings) { s.Length, s.Fixed = d, true }
}

// MaxHold ends a renewed lease with ErrMaxHold when the lease has been held for d. It is a safety net
// for a forgotten Release. The time d begins when the Client sends the request that Redis grants. If the
// answer to that request takes longer than d, Lock gives the lock back, and the error of Lock matches
// ErrMaxHold. By default, and if d is 0, there is no such limit.
func MaxHold(d time.Duration) Option {
	return func(s *hold.Settings) { s.MaxHold = d }
}

// Grace makes the lease end d before Redis can grant the lock to anybody else, so that the work has time
// to stop. The lease's Deadline is d earlier than without Grace. At this Deadline its contexts are cancelled
// and its Done is closed. During the time d the lock stays held in Redis, and Release frees the lock at once. If
// nested leases ended together, the last Release of these leases frees the lock. If the process dies,
// the lock is free at the same time as without Grace. The time from one renewal to the next is a third
// of the lease less d. If the lock is handed over to a waiter, the waiter asks
// Redis once more before its Lock returns. A Fixed(l) lease ends with ErrExpired after l minus d.
//
// There is no grace if Redis no longer has the hold. There is also no grace after Close. The default is
// 0. If d is negative, or if the lease minus d is shorter than MinLease, Lock fails with ErrBadArgument.
func Grace(d time.Duration) Option {
	return func(s *hold.Settings) { s.Grace = d }
}

// Notified makes the Client notify the holder of a Mutex, a FairMutex or a stripe when any Client takes the
// lock away by ForceRelease. The lease then ends with ErrLost after one or two round trips, and not only at
// its next renewal. ForceRelease sends a message, and the message makes the holder's Client ask Redis. If
// the message is lost, the Client learns of the loss at the next renewal. Each hold with Notified costs a
// goroutine, one more renewal when the hold begins, and a subscription on the Client's one connection for
// messages. A nested Lock has the option if the outer Lock has it. Other kinds ignore the option. By
// default it is off.
func Notified() Option {
	return func(s *hold.Settings) { s.Notified = true }
}

// Supersede makes the newest call of Lock win, for a Mutex, a FairMutex or a stripe. All callers that
// lock the name must have the option. Use it for the deploy of the latest commit, or for a reload after
// each change. When a newer call of Lock comes, the holder's lease ends with ErrSuperseded. The newer
// Lock is granted when the holder has stopped its work and releases the lock. If the holder does not
// release the lock, the newer Lock is granted after the holder's Grace or, without a Grace, after the
// rest of the holder's lease. Older calls of Lock that wait return ErrSuperseded, each when it is the
// next in the queue.
//
// If a call of Lock fails, that call is no longer the newest. But if the process of a call dies while
// the call waits, the older calls are superseded anyway. A TryLock supersedes nobody, but counts as the
// newest call when it is granted. Ask supersedes nobody. A holder without the option is not superseded,
// and a lease from Attach is not superseded. A nested Lock has the option if the outer Lock has the
// option. A hold has a Grace if each of its leases has a Grace. A MultiLock locks its members one after
// another, and so supersedes their holders at different times. Do with Pausable fails with
// ErrBadArgument.
//
// Each Lock costs two more requests than without the option. Each hold costs a goroutine, a subscription
// on the Client's one connection for messages, and a request every 1.25 s in case a message is lost. The
// lock is not passed on within the process (see Cohort). Other kinds ignore the option. By default the
// option is off.
func Supersede() Option {
	return func(s *hold.Settings) { s.Supersede = true }
}

// Replicas makes a grant count only if n replicas of the master acknowledge the grant within half a
// second. Otherwise Holdfast takes the grant back, and the error matches ErrNotReplicated. If fewer than
// n replicas acknowledge a renewal, the renewal does not prolong the lease in this process, and Holdfast
// renews again until the lease is over. So if the master fails, a grant survives if a replica that has
// the grant is promoted. The default is 0: Holdfast does not wait for replicas. See docs/guarantees.md.
func Replicas(n int) Option {
	return func(s *hold.Settings) { s.Replicas = n }
}

// JavaTokens makes a lock and Redisson's RFencedLock of the same name share their fencing tokens. The
// key of the token then has no expiry. Without JavaTokens, that key expires a week after the last grant,
// or after the time that WithTokenLife sets. Even after that, the next token is greater than all earlier
// ones. If the braces of a name make no hash tag ("a}b", "a{", "{}x"), Lock fails with ErrBadArgument,
// because Redisson would store the tokens of that name at another key.
func JavaTokens() Option {
	return func(s *hold.Settings) { s.JavaTokens = true }
}

// Cohort limits how often, and for how long, a Mutex is passed on within a process. A Release gives the
// Mutex to the next waiting goroutine of the process without asking Redis, at most n times, and for at most
// d after Redis has granted the Mutex. After that, other processes can get the Mutex. Each goroutine gets
// its own Lease and token. The default is 1000 times and 10 ms. While other processes want the Mutex too,
// there is another limit: 8 times the number of goroutines of this process that want the Mutex. So a
// goroutine that is alone in its process gets its share: see docs/guarantees.md.
//
// If n or d is 0, each Release sends a request to Redis. Each Release also sends a request if the lease is
// fixed or has Replicas or Supersede, if less than half of the lease is left, after an Extend or AtLeast, if the
// next waiter has other options, or while programs without Holdfast wait, such as Java programs. n is at most
// 1000.
func Cohort(n int, d time.Duration) Option {
	return func(s *hold.Settings) { s.LocalHandoffs, s.CohortTime = n, d }
}
