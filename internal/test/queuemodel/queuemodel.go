// Package queuemodel plays random sequences of calls of a FairMutex, or of an election, beside what both should
// be: a lock, and the queue of those that wait for it. Only tests import it.
package queuemodel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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

// Ask gives the owner the lock if the lock is free and it is the owner's turn, and reports whether the owner has the
// lock. number is that of the place that the owner had when it asked last; 0: it had none. An owner that follows
// another of its process is granted nothing.
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

// check compares the lock with what is stored in Redis in its hash, its queue and the set of those alive.
func (l *Lock) check(t *rapid.T, rdb *redis.Client, k Keys) {
	ctx := context.Background()
	var want, got []string
	for _, p := range l.Queue {
		want = append(want, fmt.Sprintf("%s %d", p.Owner, p.kept))
	}
	for _, owner := range rdb.ZRange(ctx, k.Queue, 0, -1).Val() {
		got = append(got, fmt.Sprintf("%s %.0f", owner, rdb.ZScore(ctx, k.Alive, owner).Val()))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the queue is\n%q, want\n%q", got, want)
	}
	lock := map[string]string{}
	if l.Holder != "" {
		lock[l.Holder] = map[bool]string{false: "0", true: "1"}[l.Came]
	}
	if got := rdb.HGetAll(ctx, k.Hash).Val(); !maps.Equal(got, lock) {
		t.Fatalf("the lock is %v, want %v", got, lock)
	}
	if l.Holder == "" {
		return
	}
	if got, want := rdb.PTTL(ctx, k.Hash).Val().Milliseconds(), l.until-l.Now; got != want {
		t.Fatalf("time to live %d, want %d", got, want)
	}
}

// Keys are the keys of the lock.
type Keys struct{ Hash, Queue, Alive string }

// Kind is a kind of lock, as it is when nothing has happened.
type Kind struct {
	Lock
	Keys      Keys
	Processes [2]string // the names of two
	Times     []int64   // in ms: how far the clock goes at a time
	Resource  interface {
		hold.Queueing
		Acquire(owner hold.Owner, length time.Duration) *conn.Call
		Release(owner hold.Owner, publish string) *conn.Call
	}

	// What follows may be nil.
	Number  func(o *Owner) int64       // of the place of one that joins; nil: it is behind all others
	Enters  func(t *rapid.T, o *Owner) // comes before each request of one that waits
	Leaves  func(o *Owner)             // comes after each release
	Actions map[string]func(t *rapid.T, o *Owner)
	Check   func(t *rapid.T)
}

// Owner is one that asks for the lock, with the number of its place and its token.
type Owner struct {
	hold.Owner
	Index         int // those with even ones are of one process
	Number, Token int64
}

// Play is one sequence of calls.
type Play struct {
	*Kind
	RDB    *redis.Client
	owners []*Owner
	made   int64
	token  int64 // the last
}

// Run plays sequences. kind returns a new lock of the kind.
func Run(t *testing.T, kind func(p *Play) Kind) {
	redistest.Sequences(t)
	mini := redistest.Mini(t)
	rdb := mini.Client()
	start := time.Now().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		mini.SetTime(start)
		rdb.FlushAll(context.Background())
		p := &Play{RDB: rdb}
		k := kind(p)
		p.Kind = &k
		p.Now = start.UnixMilli()
		for i := range 6 {
			p.owners = append(p.owners, p.owner(i))
		}
		of := func(f func(t *rapid.T, o *Owner)) func(*rapid.T) {
			return func(t *rapid.T) { f(t, rapid.SampledFrom(p.owners).Draw(t, "owner")) }
		}
		actions := map[string]func(*rapid.T){
			"wait": of(p.wait), "again": of(p.wait), "try": of(p.try), "leave": of(p.leave),
			"time": func(t *rapid.T) {
				p.Pass(rapid.SampledFrom(p.Times).Draw(t, "ms"))
				mini.SetTime(time.UnixMilli(p.Now))
			},
			"": func(t *rapid.T) {
				if p.check(t, rdb, p.Keys); p.Check != nil {
					p.Check(t)
				}
			},
		}
		for name, f := range p.Actions {
			actions[name] = of(f)
		}
		t.Repeat(actions)
	})
}

// owner makes a new owner: none is used again.
func (p *Play) owner(i int) *Owner {
	p.made++
	return &Owner{Owner: hold.NewOwner(p.Processes[i%2], p.made), Index: i}
}

// Do runs the script of a call.
func (p *Play) Do(t *rapid.T, call *conn.Call) []any {
	args := append([]any{int64(1) << 60}, call.Args...)
	reply, err := p.RDB.Eval(context.Background(), call.Script.Source(), call.Keys, args...).Slice()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func (p *Play) try(t *rapid.T, o *Owner) {
	confirmed := p.Holder == o.String() && p.Came
	p.grant(t, o, confirmed, p.Ask(o.String(), 0, false), p.Do(t, p.Resource.Acquire(o.Owner, p.Lease)))
}

func (p *Play) wait(t *rapid.T, o *Owner) {
	ask := line.Ask{Seq: o.Number, Follows: rapid.IntRange(0, 9).Draw(t, "follows") == 0}
	for _, other := range p.owners {
		if other != o && other.Index%2 == o.Index%2 && rapid.Bool().Draw(t, "behind") {
			ask.Behind = append(ask.Behind, other.String())
		}
	}
	if p.Enters != nil {
		p.Enters(t, o)
	}
	confirmed := p.Holder == o.String() && p.Came
	reply := p.Do(t, p.Resource.Enter(hold.Entry{Owner: o.Owner, Length: p.Lease, Ask: ask}))
	granted, nudged := p.enter(o, ask)
	if p.grant(t, o, confirmed, granted, reply); !granted && o.Number == 0 {
		o.Number = reply[3].(int64)
	}
	if got, want := fmt.Sprint(reply[6:]), fmt.Sprint(nudged); got != want {
		t.Fatalf("nudged %s, want %s", got, want)
	}
}

// enter returns whether the owner is granted the lock, and which owners are to be nudged.
func (p *Play) enter(o *Owner, ask line.Ask) (granted bool, nudged []string) {
	id := o.String()
	if !p.Waits(id) && ask.Seq > 0 && p.Holder != id {
		nudged = append(nudged, id)
	}
	granted = p.Ask(id, ask.Seq, ask.Follows)
	if !granted {
		number := ask.Seq
		if number == 0 {
			number = p.number(o)
		}
		p.Wait(id, number)
		turn := p.Holder
		if turn == "" {
			turn = p.Queue[0].Owner
		}
		if (p.Holder == "" || !p.Came) && turn != id && turn[:36] == id[:36] {
			nudged = append([]string{turn}, nudged...)
		}
	}
	for _, owner := range ask.Behind {
		if !p.Keep(owner) {
			nudged = append(nudged, owner)
		}
	}
	return granted, nudged
}

// number returns the number of the place of one that joins.
func (p *Play) number(o *Owner) (number int64) {
	switch n := len(p.Queue); {
	case p.Number != nil:
		number = p.Number(o)
	case n > 0:
		number = max(p.Now*1000, p.Queue[n-1].Number+1)
	default:
		number = p.Now * 1000
	}
	if number%10 == 0 {
		number++
	}
	return number
}

// grant checks whether a request was granted, and the token. confirmed is whether the owner had the lock, and knew.
func (p *Play) grant(t *rapid.T, o *Owner, confirmed, granted bool, reply []any) {
	token := reply[3].(int64)
	switch {
	case (reply[0] == int64(1)) != granted:
		t.Fatalf("reply %v, granted %v", reply, granted)
	case !granted:
		return
	case confirmed && token != p.token, !confirmed && token <= p.token:
		t.Fatalf("token %d after %d, confirmed: %v", token, p.token, confirmed)
	}
	o.Token, p.token = token, token
}

func (p *Play) leave(t *rapid.T, o *Owner) {
	reply := p.Do(t, p.Resource.Release(o.Owner, "PUBLISH"))
	if held := p.Leave(o.String()); (reply[0] == int64(1)) != held {
		t.Fatalf("reply %v, held %v", reply, held)
	}
	if p.Leaves != nil {
		p.Leaves(o)
	}
	p.owners[o.Index] = p.owner(o.Index)
}
