package keys

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
	at, err := ForLock(name)
	if err != nil {
		return FairLock{}, err
	}
	return FairLock{
		Lock:  at,
		Queue: own(queuePrefix, name),
		Alive: own(alivePrefix, name),
		Open:  own(openPrefix, name),
		Grant: own(grantPrefix, name),
	}, nil
}

// GrantTo returns the channel on which that client hears of its grants.
func (at FairLock) GrantTo(client string) string { return at.Grant + ":" + client }
