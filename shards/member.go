// One membership: its wait, its requests, and what follows from their answers.

package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
)

const (
	// atMost is how many requests a member makes in each second, beside its renewals.
	atMost = 2
	each   = time.Second
)

// member is one membership. Its requests are made by two goroutines, one at a time: by that of Run, which waits for
// changes in the one loop of package line, and by one that gives shards up when their works have returned.
type member struct {
	*resource
	lease *hold.Lease
	owner hold.Owner
	work  func(context.Context, *Shard) error

	ctx   context.Context // of all works; ends with the membership
	end   context.CancelCauseFunc
	works sync.WaitGroup // works, and the goroutine that gives up
	given chan struct{}  // holds one signal: a shard is to be given up
	turn  chan struct{}  // holds one signal while a request is under way

	// unheard ends the membership when it has not known for longest what it has. Renewals keep its lease, but not the
	// table: that may run out later, and then others take the shards.
	unheard *time.Timer

	// What follows belongs to the one that has the turn.
	known version
	sent  [atMost]time.Time // when the last requests were made, the oldest first

	// What follows belongs to the goroutine of Run.
	next  time.Time // when the first lease of a member is over
	heard string    // the last message
	own   bool      // it was about a change that this member has made

	rev atomic.Int64 // that of known

	mu  sync.Mutex // guards what follows, and what each Shard says
	has map[held]*Shard
	had map[int]int64 // the greatest token of each shard
	on  map[int]bool  // the shards on which a work has not returned
}

func newMember(ctx context.Context, r *resource, l *hold.Lease, work func(context.Context, *Shard) error) *member {
	m := &member{
		resource: r, lease: l, owner: l.Owner(), work: work,
		given: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		has: make(map[held]*Shard), had: make(map[int]int64), on: make(map[int]bool),
	}
	m.ctx, m.end = context.WithCancelCause(l.Context(ctx))
	return m
}

// serve keeps the works of the member as its shards are, until the membership ends. It returns why it has ended.
func (m *member) serve() error {
	stop := context.AfterFunc(m.engine.Draining(), func() { m.end(errs.Closed) })
	defer stop()
	m.unheard = time.AfterFunc(m.longest(), func() {
		m.end(fmt.Errorf("%w: redis has not answered for %v which shards the member has", errs.Lost, m.longest()))
	})
	defer m.unheard.Stop()
	m.works.Go(m.giveUp)
	want := &line.Want{
		Kind:    m.engine.Telemetry.Kind(watchKind, m.name),
		Key:     m.at.Members + " of " + m.owner.String(),
		Channel: m.at.Channel,
		Grant:   line.Common,
		Asker:   m,
		Hearer:  m,
	}
	for failures := 0; ; {
		_, err := m.engine.Lines.Wait(m.ctx, want)
		switch {
		case m.ctx.Err() != nil:
			return context.Cause(m.ctx)
		case errors.Is(err, errs.Closed):
			return err
		}
		// Redis refuses for a reason that an operator ends.
		if failures++; failures == 1 {
			m.warn("holdfast: a member cannot see who has which shard", "error", errs.Plain(err))
		}
		_ = engine.Sleep(m.ctx, pause(failures, rarely))
	}
}

// longest returns how long a member may go on without an answer that says what it has.
func (m *member) longest() time.Duration {
	return min(m.config.hold.Length, math.MaxInt64-patience) + patience
}

// Heard implements line.Hearer.
func (m *member) Heard(message string) error {
	m.own = message != "" && message != m.heard && message == strconv.FormatInt(m.rev.Load(), 10)
	m.heard = message
	return nil
}

// Try implements line.Asker: nothing is ever granted, for the member waits until it ends. Its own changes need no
// request.
func (m *member) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	m.overdue()
	if !m.own {
		next, err := m.ask(ctx)
		if err != nil {
			return line.Answer{}, err
		}
		m.next = next
	}
	m.own = false
	return line.Answer{Held: line.HeldFor(time.Until(m.next))}, nil
}

// giveUp gives up the shards whose works have returned, until the membership ends.
func (m *member) giveUp() {
	for failures := 0; ; {
		select {
		case <-m.given:
		case <-m.ctx.Done():
			return
		}
		_, err := m.ask(m.ctx)
		if failures++; err == nil {
			failures = 0
		} else if engine.Sleep(m.ctx, pause(failures, rarely)) == nil {
			m.signal()
		}
	}
}

func (m *member) signal() {
	select {
	case m.given <- struct{}{}:
	default:
	}
}

// ask makes one request, when it is its turn, and takes in the answer. It returns when the first lease of a member is
// over.
func (m *member) ask(ctx context.Context) (next time.Time, err error) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return next, ctx.Err()
	}
	defer func() { <-m.turn }()
	if err := engine.Sleep(ctx, time.Until(m.sent[0].Add(each))); err != nil {
		return next, err
	}
	copy(m.sent[:], m.sent[1:])
	m.sent[atMost-1] = time.Now()
	call := m.balance(m.owner, m.known, m.gives())
	call.Until = m.lease.Deadline()
	if err := m.engine.Conn.Run(ctx, call); err != nil {
		return next, m.engine.Foreign(ctx, engine.SortedSet, m.at.Members, err)
	}
	if call.Status() != conn.Done {
		// Redis does not have the member any more, or not all that it knew of it.
		m.end(fmt.Errorf("%w: redis does not know the member", errs.Lost))
		return next, errs.Lost
	}
	b := balanceIn(call)
	m.unheard.Reset(m.longest())
	m.known = b.version
	m.rev.Store(b.rev)
	if !b.same {
		m.follow(b)
	}
	return time.Now().Add(b.next), nil
}

// gives returns the shards whose works have returned, to be given up.
func (m *member) gives() (gives []held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h, s := range m.has {
		if s.over {
			gives = append(gives, h)
		}
	}
	return gives
}

// follow begins the works of shards that are new, and ends those of shards that are asked for or gone.
func (m *member) follow(b balance) {
	var begin []*Shard
	ends := make(map[*Shard]error)
	m.mu.Lock()
	there := make(map[held]bool, len(b.has))
	for _, h := range b.has {
		there[h] = true
		if m.has[h] == nil {
			s := &Shard{held: h, member: m}
			s.ctx, s.end = context.WithCancelCause(m.ctx)
			m.has[h] = s
			if h.token > m.had[h.number] && !m.on[h.number] {
				m.had[h.number], m.on[h.number] = h.token, true
				begin = append(begin, s)
			} else { // Redis has forgotten that it was given up, or to whom it was given since
				s.over = true
				m.signal()
			}
		}
		if b.asked[h.number] {
			ends[m.has[h]] = fmt.Errorf("%w: another member is to have the shard %d", errs.Resigned, h.number)
		}
	}
	for h, s := range m.has {
		if there[h] {
			continue
		}
		delete(m.has, h)
		if !s.over {
			ends[s] = fmt.Errorf("%w: redis does not say that the member has the shard %d", errs.Lost, h.number)
		}
	}
	m.mu.Unlock()
	for s, cause := range ends {
		m.endShard(s, cause)
	}
	for _, s := range begin {
		m.works.Go(func() { m.runShard(s) })
	}
}

// endShard ends the context of a shard. If that was done before, it changes nothing.
func (m *member) endShard(s *Shard, cause error) {
	s.end(errs.Call("run", kind, m.name, cause))
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
}

// runShard runs the work on a shard, and then makes giveUp give the shard up.
func (m *member) runShard(s *Shard) {
	defer func() { // even if the work ends its goroutine
		m.mu.Lock()
		s.over = true
		delete(m.on, s.number)
		m.mu.Unlock()
		m.signal()
	}()
	s.run()
}

// overdue names in the log each work that has not returned for a whole lease since its context ended.
func (m *member) overdue() {
	var late []*Shard
	ended := m.ctx.Err() != nil
	m.mu.Lock()
	for _, s := range m.has {
		if ended && s.since.IsZero() {
			s.since = time.Now()
		}
		if !s.over && !s.logged && !s.since.IsZero() && time.Since(s.since) > m.config.hold.Length {
			s.logged = true
			late = append(late, s)
		}
	}
	m.mu.Unlock()
	for _, s := range late {
		m.warn("holdfast: the work on a shard does not return, though its context has ended", "shard", s.number,
			"token", s.token, "since", engine.LogTime(m.config.hold.Length), "cause", errs.Plain(context.Cause(s.ctx)))
	}
}

// returned waits until all works have returned. Meanwhile the member keeps the table, as its lease is renewed: whoever
// comes finds that the shards are not free.
func (m *member) returned() {
	ctx, done := context.WithCancel(context.Background())
	go func() {
		defer done()
		m.works.Wait()
	}()
	tick := time.NewTicker(line.PollBound)
	defer tick.Stop()
	for {
		m.overdue()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			try, cancel := context.WithTimeout(ctx, line.PollBound)
			_ = m.engine.Conn.Run(try, m.keep(m.owner)) // or the next one
			cancel()
		}
	}
}
