package keys

import "strings"

// Prefixes of what belongs to semaphores and latches. The redisson_ ones are
// Redisson's own.
const (
	semaphoreChannelPrefix = "redisson_sc"
	latchChannelPrefix     = "redisson_countdownlatch__channel__"
	timeoutSuffix          = "timeout"

	callsPrefix               = "holdfast_calls"
	allPrefix                 = "holdfast_permits"
	generationsPrefix         = "holdfast_latch"
	oddSemaphoreChannelPrefix = "holdfast_sc"
	oddTimeoutPrefix          = "holdfast_timeout"
	oddLatchChannelPrefix     = "holdfast_latch_channel"
)

// Semaphore is where one counting semaphore lives.
type Semaphore struct {
	Permits string // how many permits are free: a string
	All     string // how many there are in all
	Calls   string // the beginning of the keys that record the calls of each Client
	Channel string // where new permits are told
}

// ForSemaphore returns where the semaphore of that name lives. It takes the
// names that ForLock takes.
func ForSemaphore(name string) (Semaphore, error) {
	if err := Check(name); err != nil {
		return Semaphore{}, err
	}
	return Semaphore{
		Permits: name,
		All:     own(allPrefix, name),
		Calls:   own(callsPrefix, name),
		Channel: beside(name, neighbour(semaphoreChannelPrefix, name), oddSemaphoreChannelPrefix),
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
// that ForLock takes.
func ForPermits(name string) (Permits, error) {
	at, err := ForSemaphore(name)
	if err != nil {
		return Permits{}, err
	}
	taken := "{" + name + "}:" + timeoutSuffix // Redisson's suffixName
	if strings.Contains(name, "{") {
		taken = name + ":" + timeoutSuffix
	}
	return Permits{
		Available: name,
		Taken:     beside(name, taken, oddTimeoutPrefix),
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
	return Latch{
		Count:       name,
		Generations: own(generationsPrefix, name),
		Calls:       own(callsPrefix, name),
		Channel:     channel,
		Sharded:     beside(name, channel, oddLatchChannelPrefix),
	}, nil
}

// beside returns Redisson's key for what belongs to name where that is in the
// name's slot, and otherwise one of our own that is.
func beside(name, redissons, odd string) string {
	if Slot(redissons) == Slot(name) {
		return redissons
	}
	return own(odd, name)
}

// own returns a key, in the slot of name, for what only Holdfast knows. No two
// names share it.
func own(prefix, name string) string {
	if braced(name) {
		return prefix + ":{" + slotTag(Slot(name)) + "}:" + name
	}
	return prefix + ":{" + name + "}"
}
