package keys

// Prefixes of what belongs to semaphores and latches. The redisson_ ones are
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

// Semaphore is where one counting semaphore lives.
type Semaphore struct {
	Permits string // how many permits are free: a string
	All     string // how many there are in all
	Calls   string // the beginning of the keys that record the calls of each Client
	Channel string // where new permits are told
}

// ForSemaphore returns where the semaphore of that name lives. It takes the
// names that ForLock takes, if Redisson keeps what belongs to them in their slot;
// otherwise the error matches errs.BadArgument. A waiter in Java never polls, so it
// would sleep for ever if permits were told elsewhere.
func ForSemaphore(name string) (Semaphore, error) {
	if err := CheckShared(name); err != nil {
		return Semaphore{}, err
	}
	return Semaphore{
		Permits: name,
		All:     own(allPrefix, name),
		Calls:   own(callsPrefix, name),
		Channel: neighbour(semaphoreChannelPrefix, name),
	}, nil
}

// Permits is where one semaphore with leased permits lives.
type Permits struct {
	Available string // how many permits are free: a string
	Taken     string // those that are not: a sorted set of ids by the ms of their expiry
	Calls     string // the beginning of the keys that record the calls of each Client
	Channel   string // where new permits are told
}

// ForPermits returns where the permits of that name live. It takes the names
// that ForSemaphore takes. On another there would be two sets of permits.
func ForPermits(name string) (Permits, error) {
	at, err := ForSemaphore(name)
	if err != nil {
		return Permits{}, err
	}
	return Permits{
		Available: name,
		Taken:     timeouts(name) + timeoutSuffix,
		Calls:     at.Calls,
		Channel:   at.Channel,
	}, nil
}

// Latch is where one latch lives.
type Latch struct {
	Count       string // the count: a string
	Generations string // how each generation ended
	Calls       string // the beginning of the keys that record the calls of each Client

	// Channel is where the end is told. Redisson puts braces around the name
	// even if it has some, which takes the channel of such a name out of its
	// slot. Where channels belong to slots Sharded takes its place; for names
	// without braces they are the same.
	Channel, Sharded string
}

// ForLatch returns where the latch of that name lives. It takes the names that
// ForLock takes.
func ForLatch(name string) (Latch, error) {
	if err := Check(name); err != nil {
		return Latch{}, err
	}
	channel := latchChannelPrefix + "{" + name + "}"
	sharded := channel
	if Slot(channel) != Slot(name) {
		sharded = own(oddLatchChannelPrefix, name)
	}
	return Latch{
		Count:       name,
		Generations: own(generationsPrefix, name),
		Calls:       own(callsPrefix, name),
		Channel:     channel,
		Sharded:     sharded,
	}, nil
}

// own returns a key, in the slot of name, for what only Holdfast knows. No two
// names share it.
func own(prefix, name string) string {
	if braced(name) {
		return prefix + ":{" + slotTag(Slot(name)) + "}:" + name
	}
	return prefix + ":{" + name + "}"
}
