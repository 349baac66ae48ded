// Package queuemodel is what the models of a FairMutex and of an election share: a lock, and the queue of
// those that wait for it. Only tests import it.
package queuemodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lock is the lock as it should be. Times are in ms of the server's clock.
type Lock struct {
	Lease time.Duration // of its holder
	Kept  time.Duration // how long a place is kept

	Now    int64
	Holder string
	Came   bool // the holder has asked since it was handed to it
	Queue  []Place

	until int64 // when the holder's lease is over
	life  int64 // of the queue's keys
}

// Place is the place of one owner.
type Place struct {
	Owner  string
	Number int64
	kept   int64
}

// Pass lets that many ms pass.
func (l *Lock) Pass(ms int64) {
	l.Now += ms
	if l.Now >= l.until {
		l.Holder = ""
	}
	if l.Now >= l.life {
		l.Queue = nil
	}
}

// Waits reports whether the owner has a place.
func (l *Lock) Waits(owner string) bool { return l.at(owner) >= 0 }

func (l *Lock) at(owner string) int {
	return slices.IndexFunc(l.Queue, func(p Place) bool { return p.Owner == owner })
}

func (l *Lock) giveUp(owner string) {
	l.Queue = slices.DeleteFunc(l.Queue, func(p Place) bool { return p.Owner == owner })
}

func (l *Lock) dropDead(but string) {
	for len(l.Queue) > 0 && l.Queue[0].Owner != but && l.Queue[0].kept <= l.Now {
		l.Queue = l.Queue[1:]
	}
}

// Ask gives the owner the lock if that is free and it is its turn, and reports whether it has the lock.
// number is that of the place that it had when it asked last, 0 if it has not. An owner that follows
// another of its process is given only what it holds.
func (l *Lock) Ask(owner string, number int64, follows bool) bool {
	if l.Holder != owner {
		l.dropDead(owner)
		first := len(l.Queue) == 0 || l.Queue[0].Owner == owner || !l.Waits(owner) && number != 0 && number < l.Queue[0].Number
		if l.Holder == "" && first && !follows {
			l.Holder, l.until = owner, 0
		}
	}
	if l.Holder != owner {
		return false
	}
	l.Came = true
	l.until = max(l.until, l.Now+l.Lease.Milliseconds())
	l.giveUp(owner)
	return true
}

// Wait keeps the owner's place. If it has none, it gets one with that number.
func (l *Lock) Wait(owner string, number int64) {
	if !l.Keep(owner) {
		l.Queue = append(l.Queue, Place{owner, number, l.Now + l.Kept.Milliseconds()})
		// The clock stands still between actions. So numbers may be equal once the queue has been empty.
		slices.SortFunc(l.Queue, func(a, b Place) int {
			return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Owner, b.Owner))
		})
	}
}

// Keep keeps the owner's place, and reports whether it has one.
func (l *Lock) Keep(owner string) bool {
	l.life = l.Now + 6*l.Kept.Milliseconds()
	i := l.at(owner)
	if i >= 0 {
		l.Queue[i].kept = l.Now + l.Kept.Milliseconds()
	}
	return i >= 0
}

// Leave releases the lock, or gives up the place, and reports whether the owner had the lock.
func (l *Lock) Leave(owner string) bool {
	held := l.Holder == owner
	if held {
		l.Holder = ""
	}
	l.giveUp(owner)
	l.dropDead("")
	if l.Holder == "" && len(l.Queue) > 0 {
		l.Holder, l.Came, l.until = l.Queue[0].Owner, false, l.Queue[0].kept
		l.giveUp(l.Holder)
	}
	return held
}

// Check compares the lock with what stands in Redis in its hash, its queue and the set of those alive.
func (l *Lock) Check(t interface{ Fatalf(string, ...any) }, rdb *redis.Client, hash, queue, alive string) {
	ctx := context.Background()
	var want, got []string
	for _, p := range l.Queue {
		want = append(want, fmt.Sprintf("%s %d", p.Owner, p.kept))
	}
	for _, owner := range rdb.ZRange(ctx, queue, 0, -1).Val() {
		got = append(got, fmt.Sprintf("%s %.0f", owner, rdb.ZScore(ctx, alive, owner).Val()))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the queue is\n%q, want\n%q", got, want)
	}
	lock := map[string]string{}
	if l.Holder != "" {
		lock[l.Holder] = map[bool]string{false: "0", true: "1"}[l.Came]
	}
	if got := rdb.HGetAll(ctx, hash).Val(); fmt.Sprint(got) != fmt.Sprint(lock) {
		t.Fatalf("the lock is %v, want %v", got, lock)
	}
	if l.Holder == "" {
		return
	}
	if got, want := rdb.PTTL(ctx, hash).Val().Milliseconds(), l.until-l.Now; got != want {
		t.Fatalf("time to live %d, want %d", got, want)
	}
}
