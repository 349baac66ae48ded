// This file checks an election, its queue of priorities and its record against a plain model of them.

package leader

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const modelLease = 8 * time.Second

// model is the election as it should be. Times are in ms of the server's clock.
type model struct {
	now    int64
	holder string
	came   bool // the holder has asked since it was handed to it
	until  int64
	queue  []waiting
	life   int64 // of the queue's keys
	says   said
}

// waiting is a candidate's place.
type waiting struct {
	owner    string
	number   int64
	kept     int64
	priority int
}

// said is the record of the leader.
type said struct {
	owner    string
	token    int64
	priority int
	asked    bool
	life     int64
}

func (m *model) pass(ms int64) {
	m.now += ms
	if m.now >= m.until {
		m.holder = ""
	}
	if m.now >= m.life {
		m.queue = nil
	}
	if m.now >= m.says.life {
		m.says = said{}
	}
}

func (m *model) at(owner string) int {
	return slices.IndexFunc(m.queue, func(w waiting) bool { return w.owner == owner })
}

func (m *model) leaveQueue(owner string) {
	m.queue = slices.DeleteFunc(m.queue, func(w waiting) bool { return w.owner == owner })
}

func (m *model) dropDead(but string) {
	for len(m.queue) > 0 && m.queue[0].owner != but && m.queue[0].kept <= m.now {
		m.queue = m.queue[1:]
	}
}

// leads reports whether the record is that of the holder.
func (m *model) leads() bool { return m.says.owner != "" && m.says.owner == m.holder }

// enter returns whether the candidate is granted the lead. number is that of its place, or 0.
func (m *model) enter(owner string, number int64, priority int, preempts, follows bool) (granted bool) {
	if preempts && m.leads() && m.says.priority < priority {
		m.says.asked = true
	}
	if m.holder != owner {
		m.dropDead(owner)
		first := len(m.queue) == 0 || m.queue[0].owner == owner || m.at(owner) < 0 && number != 0 && number < m.queue[0].number
		if m.holder == "" && first && !follows {
			m.holder, m.until = owner, 0
		}
	}
	if m.holder == owner {
		m.came = true
		m.until = max(m.until, m.now+modelLease.Milliseconds())
		m.leaveQueue(owner)
		return true
	}
	if i := m.at(owner); i >= 0 {
		m.queue[i].kept = m.now + placeLease.Milliseconds()
	} else {
		if number == 0 {
			number = m.number(priority)
		}
		m.queue = append(m.queue, waiting{owner, number, m.now + placeLease.Milliseconds(), priority})
		// The clock stands still between actions. So numbers may be equal once the queue has been empty.
		slices.SortFunc(m.queue, func(a, b waiting) int {
			return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.owner, b.owner))
		})
	}
	m.life = m.now + 6*placeLease.Milliseconds()
	return false
}

// number returns the number of a candidate that joins: it is behind all of its priority.
func (m *model) number(priority int) int64 {
	number := m.now*1000 - int64(priority)*step
	for _, w := range m.queue {
		if w.priority == priority {
			number = max(number, w.number+1)
		}
	}
	if number%10 == 0 {
		number++
	}
	return number
}

// tell returns whether the owner leads, and whether it is asked to resign.
func (m *model) tell(owner string, token int64, priority int) (leads, asked bool) {
	if m.holder != owner {
		return false, false
	}
	if m.says.owner != owner {
		m.says = said{owner: owner, token: token, priority: priority}
	}
	if life := m.now + (modelLease + recordLife).Milliseconds(); m.says.life == 0 || m.says.life-m.now < (modelLease+recordLife).Milliseconds()/2 {
		m.says.life = life
	}
	return true, m.says.asked
}

// leave returns whether the owner had the lead.
func (m *model) leave(owner string) bool {
	held := m.holder == owner
	if held {
		m.holder = ""
	}
	if m.says.owner == owner {
		m.says = said{}
	}
	m.leaveQueue(owner)
	m.dropDead("")
	if m.holder == "" && len(m.queue) > 0 {
		m.holder, m.came, m.until = m.queue[0].owner, false, m.queue[0].kept
		m.leaveQueue(m.holder)
	}
	return held
}

// check compares the model with Redis. In the model too, candidates stand by priority.
func (m *model) check(t *rapid.T, rdb *redis.Client, r *resource) {
	ctx := context.Background()
	var want, got []string
	for i, w := range m.queue {
		want = append(want, fmt.Sprintf("%s %d", w.owner, w.kept))
		if i > 0 && m.queue[i-1].priority < w.priority {
			t.Fatalf("a candidate of priority %d is before one of %d", m.queue[i-1].priority, w.priority)
		}
	}
	for _, owner := range rdb.ZRange(ctx, r.at.Queue, 0, -1).Val() {
		got = append(got, fmt.Sprintf("%s %.0f", owner, rdb.ZScore(ctx, r.at.Alive, owner).Val()))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the queue is\n%q, want\n%q", got, want)
	}
	lock := map[string]string{}
	if m.holder != "" {
		lock[m.holder] = map[bool]string{false: "0", true: "1"}[m.came]
	}
	if got := rdb.HGetAll(ctx, r.at.Hash).Val(); fmt.Sprint(got) != fmt.Sprint(lock) {
		t.Fatalf("the lead is %v, want %v", got, lock)
	}
	says := rdb.HMGet(ctx, r.at.Record, "owner", "priority", "asked").Val()
	if m.says.owner == "" && says[0] == nil {
		return
	}
	if says[0] != m.says.owner || says[1] != strconv.Itoa(m.says.priority) || (says[2] != nil) != m.says.asked {
		t.Fatalf("the record is %v, want %+v", says, m.says)
	}
}

// Whatever calls come in whatever order, the election is in the state of the model, and tokens grow.
func TestModel(t *testing.T) {
	redistest.Sequences(t)
	mini := redistest.Mini(t)
	rdb := mini.Client()
	e, err := engine.New(rdb, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Conn.PublishCommand(t.Context()); err != nil { // each campaign begins with that
		t.Fatal(err)
	}
	start := time.Now().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		mini.SetTime(start)
		p := newPlay(e, rdb, start)
		t.Repeat(map[string]func(*rapid.T){
			"enter": p.enter, "again": p.enter, "tell": p.tell, "resign": p.askToResign, "leave": p.leave,
			"time": func(t *rapid.T) {
				p.m.pass(rapid.SampledFrom([]int64{1, 700, 1200, 2499, 2501, 8001, 16000}).Draw(t, "ms"))
				mini.SetTime(time.UnixMilli(p.m.now))
				p.m.check(t, p.rdb, &p.r)
			},
		})
	})
}

// play is one sequence of calls.
type play struct {
	m          *model
	rdb        *redis.Client
	r          resource
	say        config
	candidates []candidacy
	made       int64
	token      int64
}

// candidacy is one owner, with the number of its place and its token.
type candidacy struct {
	owner    hold.Owner
	number   int64
	token    int64
	priority int
}

func newPlay(e *engine.Engine, rdb *redis.Client, start time.Time) *play {
	p := &play{m: &model{now: start.UnixMilli()}, rdb: rdb}
	p.rdb.FlushAll(context.Background())
	p.say.hold.Length = modelLease
	p.r = newResource(e, "n", "n", &p.say)
	for i := range 6 {
		p.candidates = append(p.candidates, p.candidacy(i))
	}
	return p
}

// candidacy makes a new owner for the i-th candidate: no owner is used again.
func (p *play) candidacy(i int) candidacy {
	p.made++
	return candidacy{owner: hold.NewOwner([]string{clientA, clientB}[i%2], p.made), priority: i%3 - 1}
}

// draw chooses a candidate.
func (p *play) draw(t *rapid.T) (c *candidacy, i int) {
	i = rapid.IntRange(0, len(p.candidates)-1).Draw(t, "candidate")
	return &p.candidates[i], i
}

// run runs the script of a call.
func (p *play) run(t *rapid.T, call *conn.Call) []any {
	args := append([]any{int64(1) << 60}, call.Args...)
	reply, err := p.rdb.Eval(context.Background(), call.Script.Source(), call.Keys, args...).Slice()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func (p *play) enter(t *rapid.T) {
	c, _ := p.draw(t)
	p.say.priority, p.say.preempt = c.priority, rapid.Bool().Draw(t, "preempts")
	ask := line.Ask{Seq: c.number, Follows: rapid.IntRange(0, 9).Draw(t, "follows") == 0}
	reply := p.run(t, p.r.Enter(hold.Entry{Owner: c.owner, Length: modelLease, Ask: ask}))
	granted := p.m.enter(c.owner.String(), c.number, c.priority, p.say.preempt, ask.Follows)
	if (reply[0] == int64(1)) != granted {
		t.Fatalf("reply %v, granted %v", reply, granted)
	}
	switch number := reply[3].(int64); {
	case granted && c.token == 0 && number <= p.token:
		t.Fatalf("token %d after %d", number, p.token)
	case granted:
		c.token, p.token = number, max(p.token, number)
	case c.number == 0:
		c.number = number
	}
	p.m.check(t, p.rdb, &p.r)
}

func (p *play) tell(t *rapid.T) {
	c, _ := p.draw(t)
	if p.m.holder == c.owner.String() && !p.m.came {
		return // it does not know that it leads
	}
	p.say.priority = c.priority
	reply := p.run(t, p.r.tell(c.owner.String(), "PUBLISH", c.token, 0))
	leads, asked := p.m.tell(c.owner.String(), c.token, c.priority)
	if (reply[0] == int64(1)) != leads || leads && (reply[3] != "") != asked {
		t.Fatalf("reply %v, leads %v, asked %v", reply, leads, asked)
	}
	p.m.check(t, p.rdb, &p.r)
}

// askToResign asks the leader of some term, which may be over.
func (p *play) askToResign(t *rapid.T) {
	c, _ := p.draw(t)
	reply := p.run(t, p.r.ask(c.token, "PUBLISH", "somebody"))
	leads := c.token != 0 && p.m.leads() && p.m.says.token == c.token
	if leads {
		p.m.says.asked = true
	}
	if (reply[0] == int64(1)) != leads {
		t.Fatalf("reply %v, leads %v", reply, leads)
	}
	p.m.check(t, p.rdb, &p.r)
}

func (p *play) leave(t *rapid.T) {
	c, i := p.draw(t)
	reply := p.run(t, p.r.Release(c.owner, "PUBLISH"))
	if held := p.m.leave(c.owner.String()); (reply[0] == int64(1)) != held {
		t.Fatalf("reply %v, held %v", reply, held)
	}
	p.candidates[i] = p.candidacy(i)
	p.m.check(t, p.rdb, &p.r)
}
