package keys

import "strings"

// What belongs to a fair lock beside what any lock has. It is Holdfast's own:
// the queue that Redisson's fair lock keeps is another one, which nobody of
// Holdfast looks at.
const (
	queuePrefix = "holdfast_lock_queue"
	alivePrefix = "holdfast_lock_alive"
	openPrefix  = "holdfast_lock_open"
	grantPrefix = "holdfast_lock_grant"
)

// FairLock is where one fair lock lives. The Lock is the same as that of the
// plain lock of the name, so that they exclude each other.
type FairLock struct {
	Lock
	Queue string // who waits: a sorted set of owners by their number
	Alive string // until when each counts as waiting: a sorted set of owners by ms
	Open  string // stands while the lock is left to those outside the queue
	Grant string // what the channel of each Client begins with, on which it hears of its grants
}

// ForFairLock returns where the fair lock of that name lives. It takes the names
// that ForLock takes.
func ForFairLock(name string) (FairLock, error) {
	if err := Check(name); err != nil {
		return FairLock{}, err
	}
	return FairLockAt(name), nil
}

// FairLockAt is ForFairLock for a name that has been checked. It is cheap, so that
// a lock need not keep all of them: a process may have very many.
func FairLockAt(name string) FairLock {
	if braced(name) {
		return FairLock{
			Lock:  lockAt(name),
			Queue: own(queuePrefix, name),
			Alive: own(alivePrefix, name),
			Open:  own(openPrefix, name),
			Grant: own(grantPrefix, name),
		}
	}
	at := besides(name, tokenPrefix, channelPrefix, queuePrefix, alivePrefix, openPrefix, grantPrefix)
	return FairLock{
		Lock:  Lock{Hash: name, Token: at[0], Channel: at[1]},
		Queue: at[2],
		Alive: at[3],
		Open:  at[4],
		Grant: at[5],
	}
}

// QueueAt returns the queue and the channel alone of FairLockAt.
func QueueAt(name string) (queue, channel string) {
	if braced(name) {
		at := FairLockAt(name)
		return at.Queue, at.Channel
	}
	at := besides(name, queuePrefix, channelPrefix)
	return at[0], at[1]
}

// besides returns what stands beside a name without braces under those prefixes,
// all cut from one string.
func besides(name string, prefixes ...string) (keys [6]string) {
	size := 0
	for _, prefix := range prefixes {
		size += len(prefix) + len(":{}") + len(name)
	}
	var all strings.Builder
	all.Grow(size)
	for _, prefix := range prefixes {
		all.WriteString(prefix)
		all.WriteString(":{")
		all.WriteString(name)
		all.WriteString("}")
	}
	left := all.String()
	for i, prefix := range prefixes {
		n := len(prefix) + len(":{}") + len(name)
		keys[i], left = left[:n], left[n:]
	}
	return keys
}

// Told returns a channel as it may be told: that on which a Client hears of its grants
// ends in the Client's id, by which anybody could take its holds over, so only the
// beginning of that is left.
func Told(channel string) string {
	const id, short = len("00000000-0000-0000-0000-000000000000"), 8
	at := strings.LastIndexByte(channel, ':') + 1
	if !strings.HasPrefix(channel, grantPrefix) || len(channel)-at != id {
		return channel
	}
	return channel[:at+short] + "…"
}

// GrantTo returns the channel on which that client hears of its grants.
func (at FairLock) GrantTo(client string) string { return at.Grant + ":" + client }
