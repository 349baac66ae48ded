package keys

// Prefixes of the keys and channels of semaphores and latches. The redisson_ ones are
// Redisson's own.
const (
	semaphoreChannelPrefix = "redisson_sc"
	latchChannelPrefix     = "redisson_countdownlatch__channel__"
	timeoutSuffix          = "timeout"

	callsPrefix           = "holdfast_calls"
	allPrefix             = "holdfast_permits"
	generationsPrefix     = "holdfast_latch"
	oddLatchChannelPrefix = "holdfast_latch_channel"
)

// Semaphore holds the keys and the channel of one counting semaphore.
type Semaphore struct {
	Permits string // how many permits are free: a string
	All     string // how many there are in all
	Calls   string // the beginning of the keys that record the calls of each Client
	Channel string // on which new permits are announced
}

// ForSemaphore returns the keys and the channel of the semaphore of that name. It takes the
// names that ForLock takes, if Redisson's rule keeps the keys beside them in their slot;
// otherwise the error matches errs.BadArgument. A waiter in Java never polls, so it would sleep
// for ever if new permits were announced on another channel.
func (s Space) ForSemaphore(name string) (Semaphore, error) {
	if err := s.CheckShared(name); err != nil {
		return Semaphore{}, err
	}
	return Semaphore{
		Permits: name,
		All:     s.own(allPrefix, name),
		Calls:   s.own(callsPrefix, name),
		Channel: s.neighbour(semaphoreChannelPrefix, name),
	}, nil
}

// Permits holds the keys and the channel of one semaphore with leased permits.
type Permits struct {
	Available string // how many permits are free: a string
	Taken     string // the permits that are taken: a sorted set of ids by the ms of their expiry
	Calls     string // the beginning of the keys that record the calls of each Client
	Channel   string // on which new permits are announced
}

// ForPermits returns the keys and the channel of the permits of that name. It takes the names
// that ForSemaphore takes: for any other name Holdfast and Java would have two sets of permits.
func (s Space) ForPermits(name string) (Permits, error) {
	at, err := s.ForSemaphore(name)
	if err != nil {
		return Permits{}, err
	}
	return Permits{
		Available: name,
		Taken:     s.timeouts(name) + timeoutSuffix,
		Calls:     at.Calls,
		Channel:   at.Channel,
	}, nil
}

// Latch holds the keys and the channels of one latch.
type Latch struct {
	Count       string // the count: a string
	Generations string // how each generation ended
	Calls       string // the beginning of the keys that record the calls of each Client

	// Channel is the channel on which the end of the count is announced. Redisson puts braces
	// around the name even if the name has some, which takes the channel of such a name out of
	// the name's slot. Where channels belong to slots, Sharded is used instead. For names
	// without braces the two are the same.
	Channel, Sharded string
}

// ForLatch returns the keys and the channels of the latch of that name. It takes the names that
// ForLock takes.
func (s Space) ForLatch(name string) (Latch, error) {
	if err := s.Check(name); err != nil {
		return Latch{}, err
	}
	channel := string(s) + latchChannelPrefix + "{" + name + "}"
	sharded := channel
	if Slot(channel) != Slot(name) {
		sharded = s.own(oddLatchChannelPrefix, name)
	}
	return Latch{
		Count:       name,
		Generations: s.own(generationsPrefix, name),
		Calls:       s.own(callsPrefix, name),
		Channel:     channel,
		Sharded:     sharded,
	}, nil
}

// own returns a key of Holdfast's own, in the slot of name. No two names share it.
func (s Space) own(prefix, name string) string {
	if braced(name) {
		return string(s) + prefix + ":{" + slotTag(Slot(name)) + "}:" + name
	}
	return string(s) + prefix + ":{" + name + "}"
}
