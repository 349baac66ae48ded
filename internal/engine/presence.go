// The presence of a Client in Redis: its identity, and the notes of its holders.

package engine

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

var (
	presentScript = conn.NewScript("client/present", lua("present"))
	absentScript  = conn.NewScript("client/absent", lua("absent"), conn.Always)
)

const (
	// MaxSaid is how many bytes an identity or a note has at most. The rest is cut off.
	MaxSaid = 256
	// maxNotes is how many notes of a Client are shown at a time, so that what it says stays small.
	maxNotes = 256

	// presentFor is how long what a Client says stays after it was written last. A lease is rarely
	// longer, and one that a dead process left behind is known for as long.
	presentFor = time.Hour
	// presentEvery is how often it is written while the Client is in use, in case the server has lost
	// it.
	presentEvery = time.Minute
	// presentPause is the least time between two writes, however often the notes change.
	presentPause = 250 * time.Millisecond
	// presentRetry is how long after a failure the next try comes.
	presentRetry = 5 * time.Second
	// absentGrace is how long Close waits until what the Client says is removed.
	absentGrace = 500 * time.Millisecond
)

// presence keeps a Client's identity and notes in Redis. It is one more task of the renewal
// scheduler: it has no goroutine and no timer of its own, and no caller waits for it.
//
// It is on the wheel from the first acquisition until the Client has held nothing, waited for nothing
// and asked for nothing for presentEvery. So a Client that is idle wakes nobody.
type presence struct {
	e     *Engine
	who   string
	key   string
	entry renewal.Entry
	use   atomic.Int32 // see the constants

	mu      sync.Mutex // guards what follows
	notes   map[int64]note
	version int64         // of what is to be said: it rises with each change
	saying  int64         // the version of the last write
	said    int64         // the version that is in Redis
	sending bool          // a write is under way: the scheduler must not be asked for another
	soonest time.Duration // when the next write may come, by the Client's age
	failing bool          // the last write failed, and that was logged
	write   *conn.Call    // the last write
	written bool          // Redis may have the key
	late    int64         // until when a write that was not answered may come, in µs of the server's clock
	stands  bool          // it is not removed: see StaysBehind
}

type note struct {
	text string
	by   any // the lease that says it
}

// What is known of the use of a Client.
const (
	idle int32 = iota // it is not on the wheel
	used              // it is, and the Client has asked for something since the last write
	kept              // it is, and the Client has asked for nothing since
)

// SayWho makes the Client write the identity who to Redis. It must be called before the first
// acquisition.
func (e *Engine) SayWho(who string) {
	e.presence = &presence{e: e, who: Cut(who), key: e.Keys.ForClient(e.client), version: 1}
}

// Cut returns the first MaxSaid bytes of text at most, without splitting a character.
func Cut(text string) string {
	if len(text) > MaxSaid {
		text = text[:MaxSaid]
	}
	return strings.ToValidUTF8(text, "")
}

// Present notes that the Client asks for something. Each acquisition calls it, so it sends nothing.
func (e *Engine) Present() {
	p := e.presence
	if p == nil || p.use.Load() == used {
		return
	}
	if p.use.Swap(used) == idle {
		e.Renewals.Schedule(p, time.Now())
	}
}

// Note makes the Client write a note about the hold of its owner with that number, in place of the
// note before. by is the lease. "" removes a note that this lease has made.
func (e *Engine) Note(owner int64, by any, text string) {
	p := e.presence
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.change(owner, note{Cut(text), by}) && !p.sending {
		e.Renewals.Schedule(p, e.AtAge(max(e.Age(), p.soonest))) // see Renewed
	}
}

// change takes in a note, and reports whether it says anything new. The caller holds the mutex.
func (p *presence) change(owner int64, n note) bool {
	old, noted := p.notes[owner]
	switch {
	case n == old:
		return false
	case n.text == "" && n.by != old.by:
		return false
	case n.text == "":
		delete(p.notes, owner)
	case !noted && len(p.notes) >= maxNotes:
		return false
	case p.notes == nil:
		p.notes = map[int64]note{owner: n}
	default:
		p.notes[owner] = n
	}
	p.version++
	return true
}

// StaysBehind notes that something which the Client held stays in Redis after it, so the Client's
// identity must stay too.
func (e *Engine) StaysBehind() {
	if p := e.presence; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stands = true
	}
}

// Entry implements renewal.Task.
func (p *presence) Entry() *renewal.Entry { return &p.entry }

// Key implements renewal.Task.
func (p *presence) Key() string { return p.key }

// Urgency implements renewal.Task. Holds go first: they end sooner.
func (p *presence) Urgency() (deadline time.Time, try time.Duration) {
	return time.Now().Add(presentFor), presentRetry
}

// Suspect implements renewal.Task.
func (p *presence) Suspect(now time.Time) (next time.Time, renew bool) { return p.Tick(now) }

// Tick implements renewal.Task. After it has asked for a write, Renewed sets the time of the next
// one.
func (p *presence) Tick(time.Time) (next time.Time, renew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sending {
		return time.Time{}, false
	}
	if news := p.version != p.said && !p.failing; !news && !p.stays() {
		return time.Time{}, false
	}
	p.sending, p.written = true, true
	return time.Time{}, true
}

// stays reports whether the Client is still in use. If it is not, the presence leaves the wheel.
func (p *presence) stays() bool {
	if p.use.CompareAndSwap(used, kept) || p.e.registry.any() || p.e.Lines.Any() {
		return true
	}
	return !p.use.CompareAndSwap(kept, idle) && p.use.Load() == used // again, just now
}

// Part implements Renewable: it is written by a call of its own.
func (p *presence) Part() Part { return Part{} }

// Renewal implements Renewable.
func (p *presence) Renewal() *conn.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	args := []any{presentFor.Milliseconds(), p.version, p.who}
	for owner, n := range p.notes {
		args = append(args, strconv.FormatInt(owner, 10), n.text)
	}
	p.saying = p.version
	p.write = &conn.Call{Script: presentScript, Keys: []string{p.key}, Args: args}
	return p.write
}

// Renewed implements Renewable.
func (p *presence) Renewed(r Renewed) {
	if p.renewed(r) && r.Err != nil && !errors.Is(r.Err, errs.Closed) {
		p.e.Log.Warn("holdfast: the identity of this Client could not be written; locks go on without it",
			"error", errs.Plain(r.Err))
	}
}

// renewed takes in the outcome of a write, and sets the time of the next one. begun says that it is the
// first one that failed. The time is set before the mutex is given back: if a note came in between, its
// earlier time would be overwritten, and the note would wait.
func (p *presence) renewed(r Renewed) (begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun = p.answered(r)
	next := presentEvery
	switch {
	case p.failing && !errors.Is(r.Err, errs.Denied):
		next = presentRetry
	case !p.failing && p.version != p.said:
		next = presentPause
	}
	p.e.Renewals.Schedule(p, time.Now().Add(next))
	return begun
}

// answered takes in the outcome of a write. begun says that it is the first one that failed. The caller
// holds the mutex.
func (p *presence) answered(r Renewed) (begun bool) {
	p.sending, p.soonest = false, p.e.Age()+presentPause
	if p.write != nil {
		late, _ := p.write.Outstanding()
		p.late = max(p.late, late)
	}
	failed := r.Err != nil || !r.Held // not held: it came late
	if !failed {
		p.said = p.saying
	}
	begun = failed && !p.failing
	p.failing = failed
	return begun
}

// leave removes the Client's identity and notes, while Close winds up and nothing more is written. If
// the Client leaves locks behind, which end with their leases, leave keeps them, and writes them if
// that was not done yet, so that Inspect can show whose the locks were.
func (p *presence) leave(held bool) {
	call := p.last(held)
	if call == nil {
		return
	}
	call.Cleanup = true
	p.e.Background(func() {
		ctx, cancel := context.WithTimeout(p.e.cleaning, absentGrace)
		defer cancel()
		_ = p.e.Conn.Run(ctx, call) // or the key expires; or nobody knows whose the locks are
	})
}

// last returns the last write; nil if there is none to make.
func (p *presence) last(held bool) *conn.Call {
	p.mu.Lock()
	stays, unsaid := held || p.stands, p.said == 0
	written, late := p.written, p.late
	p.mu.Unlock()
	switch {
	case stays && unsaid:
		return p.Renewal()
	case !stays && written:
		return &conn.Call{Script: absentScript, Keys: []string{p.key}, Args: []any{late}}
	}
	return nil
}
