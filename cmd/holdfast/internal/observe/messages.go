// Messages: what the library publishes about a name wakes an Observer of that name, and counts the releases.

package observe

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/keys"
)

// family is one of the ways in which releases of a name are announced.
type family int

const (
	ofLocks   family = iota // of a Mutex, a FairMutex, or the lead of an election
	ofRW                    // of an RWMutex: by a writer, or by the last reader
	ofPermits               // of a semaphore of either kind
	families
)

// counts has a number for each family.
type counts [families]int

// ear hears what is published about one name.
type ear struct {
	wake     chan struct{} // holds a signal after each message; nil: nothing is heard
	releases [families]atomic.Int64
	stop     func()
}

// take returns how many releases were announced since the last take.
func (e *ear) take() (n counts) {
	for f := range n {
		n[f] = int(e.releases[f].Swap(0))
	}
	return n
}

// listen returns an ear for the name. It must be stopped. It hears nothing of a pattern, and in a cluster.
func (o *Observer) listen() *ear {
	e := &ear{stop: func() {}}
	name, single := Single(o.options.Pattern)
	if _, sharded := o.rdb.(*redis.ClusterClient); !single || sharded {
		return e
	}
	at, err := channelsOf(o.space, o.space.At(name))
	if err != nil {
		return e // it can be no name of Holdfast's
	}
	e.wake = make(chan struct{}, 1)
	sub := o.rdb.PSubscribe(context.Background(), at.patterns()...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range sub.Channel() { // closed by Close
			if f, released := at.released(m.Channel, m.Payload); released {
				e.releases[f].Add(1)
			}
			select {
			case e.wake <- struct{}{}:
			default:
			}
		}
	}()
	e.stop = func() {
		_ = sub.Close()
		<-done
	}
	return e
}

// channels are those on which something is said about a name, whatever its kind; "" where the name can be of no such
// kind.
type channels struct {
	lock, changes, grants, rw, permits, latch, barrier, slots, once string
}

func channelsOf(space keys.Space, name string) (channels, error) {
	at, err := space.ForLeader(name)
	if err != nil {
		return channels{}, err
	}
	all := channels{lock: at.Channel, changes: at.Changes, grants: at.Grant + ":"}
	if at, err := space.ForRW(name); err == nil {
		all.rw = at.Channel
	}
	if at, err := space.ForSemaphore(name); err == nil {
		all.permits = at.Channel
	}
	if at, err := space.ForLatch(name); err == nil {
		all.latch = at.Channel
	}
	if at, err := space.ForBarrier(name); err == nil {
		all.barrier = at.Channel
	}
	if at, err := space.ForSlots(name); err == nil {
		all.slots = at.Channel
	}
	all.once = strings.Replace(space.OnceRecordAt(name), "holdfast_once:", "holdfast_once_channel:", 1)
	return all, nil
}

// patterns returns what to subscribe to.
func (c channels) patterns() (patterns []string) {
	for _, channel := range []string{c.lock, c.changes, c.rw, c.permits, c.latch, c.barrier, c.slots, c.once} {
		if channel != "" {
			patterns = append(patterns, Literal(channel))
		}
	}
	return append(patterns, Literal(c.grants)+"*")
}

// released reports whether a message says that something was released. docs/keyspace.md has the messages.
func (c channels) released(channel, message string) (family, bool) {
	switch {
	case channel == c.lock:
		return ofLocks, message == "0"
	case strings.HasPrefix(channel, c.grants):
		return ofLocks, strings.Count(message, " ") == 2 // it was handed over
	case channel == c.rw:
		return ofRW, message == "0"
	}
	return ofPermits, channel == c.permits
}
