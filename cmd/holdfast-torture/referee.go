// The referee: it keeps the registers that the locks protect, and the record of what the lanes
// report.

package main

import (
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hold is one grant, as its lane reported it. Instants are in ns of the wall clock.
type hold struct {
	lane   string
	token  int64
	amount int

	waited, renewed bool // the lane was ready to wait; the lease is renewed

	call, enter int64 // Lock was called, and had returned
	last        int64 // the last instant at which it is known to have lasted
	ending      string
	why         string // why it was lost
	releasing   int64  // Release was called
	end         int64  // when the end was known: Release had returned, or the process was gone

	told, deadline int64 // for a lease that was lost

	owner  string
	claims []claim

	wrote bool // the register has taken its write
}

// The ways a hold ends; others are classes of errors of Release.
const (
	released = "released"
	lost     = "lost"
	gone     = "process gone"
	resigned = "resigned" // a term: another ended it, or its release was not waited for
)

// object is one name, its register and its record.
type object struct {
	name string
	rule rule

	mu     sync.Mutex
	got    map[int64]string // of a Once: the tokens of the results that callers had, with one caller
	seen   int64            // the greatest token that was presented
	value  int64
	stale  int // writes taken that were stale
	fenced int // reads and writes refused
	writes int
	holds  []*hold
	counts []count // of a latch

	parties []*party // of a barrier
}

// count is one CountDown of a latch, or one Wait.
type count struct {
	call, at int64
	left     int64 // the count after a CountDown that was answered
	wait     bool
	unknown  bool
}

// span is a stretch of time.
type span struct{ from, to int64 }

// referee serves lanes on a socket.
type referee struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	objects map[string]*object
	grants  int
	endings map[string]int
	refused map[string]int    // attempts without a grant, by class
	stalls  map[string][]span // by process
}

func newReferee(t testing.TB) *referee {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/referee")
	if err != nil {
		t.Fatalf("%v", err)
	}
	r := &referee{
		listener: listener,
		conns:    map[net.Conn]bool{},
		objects:  map[string]*object{},
		endings:  map[string]int{},
		refused:  map[string]int{},
		stalls:   map[string][]span{},
	}
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *referee) addr() string { return r.listener.Addr().String() }

// close closes all connections of lanes, and waits until their reports have been handled.
func (r *referee) close() {
	r.listener.Close()
	r.mu.Lock()
	conns := slices.Collect(maps.Keys(r.conns))
	r.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
	r.wg.Wait()
}

func (r *referee) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns[conn] = true
		r.mu.Unlock()
		r.wg.Go(func() { r.serve(conn) })
	}
}

// serve handles the reports of one lane until the lane is gone.
func (r *referee) serve(conn net.Conn) {
	l := newLine(conn)
	var current *hold
	var coming *party
	var at *object
	name := "" // the name of the lane, the same in all of its reports
	for {
		var n note
		if l.dec.Decode(&n) != nil {
			break
		}
		if name == "" {
			name = n.Lane
		}
		switch n.Topic {
		case granted:
			at, current = r.object(n.Object), newHold(name, n)
			r.count(func() { r.grants++ })
			l.enc.Encode(at.enter(current))
		case holding:
			at.lasts(current, n)
		case writing:
			at.lasts(current, n)
			l.enc.Encode(at.write(current, n.Value))
		case ended:
			at.end(current, n)
			r.count(func() { r.endings[n.Ending]++ })
			current = nil
		case failed:
			r.count(func() { r.refused[n.Ending]++ })
		case told:
			r.object(n.Object).result(name, n)
		case arriving:
			at = r.object(n.Object)
			coming = at.arrives(name, n)
		case awaited:
			at.awaited(coming, n)
			coming = nil
			r.count(func() {
				if n.Ending == tripped {
					r.grants++
				} else {
					r.refused[n.Ending]++
				}
			})
		case countedDown, waited:
			r.object(n.Object).counted(n)
		case stalled:
			process, _, _ := strings.Cut(n.Lane, ".")
			r.count(func() { r.stalls[process] = append(r.stalls[process], span{n.Call, n.At}) })
		}
	}
	if current != nil {
		now := stamp(time.Now())
		at.end(current, note{Ending: gone, Call: now, At: now})
		r.count(func() { r.endings[gone]++ })
	}
	if coming != nil {
		at.awaited(coming, note{Ending: gone, At: stamp(time.Now())})
	}
	conn.Close()
	r.count(func() { delete(r.conns, conn) })
}

func newHold(lane string, n note) *hold {
	return &hold{
		lane: lane, token: n.Token, amount: n.Amount, waited: n.Waited, renewed: n.Renewed,
		call: n.Call, enter: n.At, last: n.At, owner: n.Owner, claims: []claim{{n.At, n.Deadline}},
	}
}

func (r *referee) count(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *referee) object(name string) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[name]
	if o == nil {
		o = &object{name: name, rule: ruleOf(name)}
		r.objects[name] = o
	}
	return o
}

// enter records a hold and reads the register for it.
func (o *object) enter(h *hold) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds = append(o.holds, h)
	if !o.rule.fenced {
		return answer{}
	}
	if h.token < o.seen {
		o.fenced++
		return answer{Stale: true}
	}
	o.seen = h.token
	return answer{Value: o.value}
}

// write behaves like a protected resource: it refuses a token that is smaller than the greatest
// that it has seen. Only the lock ensures that a write that it takes follows the last one.
func (o *object) write(h *hold, value int64) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.token < o.seen {
		o.fenced++
		return answer{Stale: true}
	}
	o.writes++
	if value != o.value+1 {
		o.stale++
	}
	o.value = value
	h.wrote = true
	return answer{Value: value}
}

func (o *object) lasts(h *hold, n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h.last = max(h.last, n.At)
	if n.Deadline > h.claims[len(h.claims)-1].deadline {
		h.claims = append(h.claims, claim{n.At, n.Deadline})
	}
}

func (o *object) end(h *hold, n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h.ending, h.releasing, h.end = n.Ending, n.Call, n.At
	h.told, h.deadline, h.why = n.Told, n.Deadline, n.Why
}

func (o *object) counted(n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts = append(o.counts, count{
		call: n.Call, at: n.At, left: n.Value, wait: n.Topic == waited, unknown: n.Ending != "",
	})
}

// tally holds the numbers that are shown while the run goes on.
type tally struct{ grants, stale, fenced, lost int }

func (r *referee) tally() tally {
	r.mu.Lock()
	t := tally{grants: r.grants, lost: r.endings[lost]}
	objects := slices.Collect(maps.Values(r.objects))
	r.mu.Unlock()
	for _, o := range objects {
		o.mu.Lock()
		t.stale += o.stale
		t.fenced += o.fenced
		o.mu.Unlock()
	}
	return t
}

func (o *object) untouched() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.holds) == 0
}
