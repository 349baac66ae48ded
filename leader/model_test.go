// This file checks an election, its queue of priorities and its record against a plain model of them.

package leader

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/queuemodel"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const modelLease = 8 * time.Second

// model is the election as it should be. Times are in ms of the server's clock.
type model struct {
	queuemodel.Lock
	says     said
	priority map[string]int // of those that have asked, by owner
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
	m.Pass(ms)
	if m.Now >= m.says.life {
		m.says = said{}
	}
}

// leads reports whether the record is that of the holder.
func (m *model) leads() bool { return m.says.owner != "" && m.says.owner == m.Holder }

// enter returns whether the candidate is granted the lead. number is that of its place, or 0.
func (m *model) enter(owner string, number int64, priority int, preempts, follows bool) (granted bool) {
	if preempts && m.leads() && m.says.priority < priority {
		m.says.asked = true
	}
	m.priority[owner] = priority
	if m.Ask(owner, number, follows) {
		return true
	}
	if number == 0 {
		number = m.number(priority)
	}
	m.Wait(owner, number)
	return false
}

// number returns the number of a candidate that joins: it is behind all of its priority.
func (m *model) number(priority int) int64 {
	number := m.Now*1000 - int64(priority)*step
	for _, p := range m.Queue {
		if m.priority[p.Owner] == priority {
			number = max(number, p.Number+1)
		}
	}
	if number%10 == 0 {
		number++
	}
	return number
}

// tell returns whether the owner leads, and whether it is asked to resign.
func (m *model) tell(owner string, token int64, priority int) (leads, asked bool) {
	if m.Holder != owner {
		return false, false
	}
	if m.says.owner != owner {
		m.says = said{owner: owner, token: token, priority: priority}
	}
	if life := m.Now + (modelLease + recordLife).Milliseconds(); m.says.life == 0 || m.says.life-m.Now < (modelLease+recordLife).Milliseconds()/2 {
		m.says.life = life
	}
	return true, m.says.asked
}

// leave returns whether the owner had the lead.
func (m *model) leave(owner string) bool {
	if m.says.owner == owner {
		m.says = said{}
	}
	return m.Leave(owner)
}

// check compares the model with Redis. In the model too, candidates stand by priority.
func (m *model) check(t *rapid.T, rdb *redis.Client, r *resource) {
	ctx := context.Background()
	for i := 1; i < len(m.Queue); i++ {
		if before, p := m.priority[m.Queue[i-1].Owner], m.priority[m.Queue[i].Owner]; before < p {
			t.Fatalf("a candidate of priority %d is before one of %d", before, p)
		}
	}
	m.Check(t, rdb, r.at.Hash, r.at.Queue, r.at.Alive)
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
	e, err := enginetest.Open(rdb)
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
				mini.SetTime(time.UnixMilli(p.m.Now))
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
	lock := queuemodel.Lock{Lease: modelLease, Kept: placeLease, Now: start.UnixMilli()}
	p := &play{m: &model{Lock: lock, priority: map[string]int{}}, rdb: rdb}
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
	if p.m.Holder == c.owner.String() && !p.m.Came {
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
