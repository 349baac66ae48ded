package keys

import "strings"

// The prefixes of what a fair lock has beside the keys of every lock. They are Holdfast's own:
// Redisson's fair lock keeps another queue, which Holdfast never reads.
const (
	queuePrefix = "holdfast_lock_queue"
	alivePrefix = "holdfast_lock_alive"
	openPrefix  = "holdfast_lock_open"
	grantPrefix = "holdfast_lock_grant"
)

// FairLock holds the keys and channels of one fair lock. Its Lock is that of the plain lock of
// the name, so the two exclude each other.
type FairLock struct {
	Lock
	Queue string // the queue: a sorted set of waiting owners by their number
	Alive string // until when each place counts: a sorted set of owners by ms
	Open  string // exists while the lock is left to those outside the queue
	Grant string // the beginning of each Client's own channel, on which it hears of its grants
}

// ForFairLock returns the keys and channels of the fair lock of that name. It takes the names
// that ForLock takes.
func (s Space) ForFairLock(name string) (FairLock, error) {
	if err := s.Check(name); err != nil {
		return FairLock{}, err
	}
	return s.FairLockAt(name), nil
}

// FairLockAt is ForFairLock for a name that has been checked. It is cheap, so a lock need not
// store the keys: a process may have very many locks.
func (s Space) FairLockAt(name string) FairLock {
	if braced(name) {
		return FairLock{
			Lock:  s.lockAt(name),
			Queue: s.own(queuePrefix, name),
			Alive: s.own(alivePrefix, name),
			Open:  s.own(openPrefix, name),
			Grant: s.own(grantPrefix, name),
		}
	}
	at := s.besides(name, tokenPrefix, channelPrefix, queuePrefix, alivePrefix, openPrefix, grantPrefix)
	return FairLock{
		Lock:  Lock{Hash: name, Token: at[0], Channel: at[1]},
		Queue: at[2],
		Alive: at[3],
		Open:  at[4],
		Grant: at[5],
	}
}

// QueueAt returns the queue and the channel of FairLockAt alone.
func (s Space) QueueAt(name string) (queue, channel string) {
	if braced(name) {
		at := s.FairLockAt(name)
		return at.Queue, at.Channel
	}
	at := s.besides(name, queuePrefix, channelPrefix)
	return at[0], at[1]
}

// besides returns the keys of those prefixes for a name without braces, all cut from one
// string.
func (s Space) besides(name string, prefixes ...string) (keys [6]string) {
	size := 0
	for _, prefix := range prefixes {
		size += len(s) + len(prefix) + len(":{}") + len(name)
	}
	var all strings.Builder
	all.Grow(size)
	for _, prefix := range prefixes {
		all.WriteString(string(s))
		all.WriteString(prefix)
		all.WriteString(":{")
		all.WriteString(name)
		all.WriteString("}")
	}
	left := all.String()
	for i, prefix := range prefixes {
		n := len(s) + len(prefix) + len(":{}") + len(name)
		keys[i], left = left[:n], left[n:]
	}
	return keys
}

// Told returns a channel in a form that may be logged. The channel on which a Client hears of
// its grants ends in the Client's id, with which anybody could take over its holds, so Told
// keeps only the beginning of the id.
func Told(channel string) string {
	const id, short = len("00000000-0000-0000-0000-000000000000"), 8
	at := strings.LastIndexByte(channel, ':') + 1
	if !strings.Contains(channel, grantPrefix) || len(channel)-at != id {
		return channel
	}
	return channel[:at+short] + "…"
}

// GrantTo returns the channel on which that client hears of its grants.
func (at FairLock) GrantTo(client string) string { return at.Grant + ":" + client }
