// This file checks an election, its queue of priorities and its record against a plain model of them.

package leader

import (
	"context"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/queuemodel"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const modelLease = 8 * time.Second

// model is the election as it should be, besides the lock and its queue.
type model struct {
	*queuemodel.Play
	r        resource
	say      config
	record   said
	priority map[string]int // of those that have asked, by owner
}

// said is the record of the leader. Times are in ms of the server's clock.
type said struct {
	owner    string
	token    int64
	priority int
	asked    bool
	life     int64
}

// Whatever calls come in whatever order, the election is in the state of the model, and tokens grow.
func TestModel(t *testing.T) {
	e := enginetest.New(t, redistest.Mini(t).Client())
	if _, err := e.Conn.PublishCommand(t.Context()); err != nil { // each campaign begins with that
		t.Fatal(err)
	}
	queuemodel.Run(t, func(p *queuemodel.Play) queuemodel.Kind {
		m := &model{Play: p, priority: map[string]int{}}
		m.say.hold.Length = modelLease
		m.r = newResource(e, "n", "n", &m.say)
		return queuemodel.Kind{
			Lock: queuemodel.Lock{Lease: modelLease, Kept: placeKept}, Keys: queuemodel.Keys{Hash: m.r.at.Hash, Queue: m.r.at.Queue, Alive: m.r.at.Alive},
			Processes: [2]string{clientA, clientB}, Times: []int64{1, 700, 1200, 2499, 2501, 8001, 16000}, Resource: &m.r,
			Number: m.number, Enters: m.enters, Check: m.check,
			Leaves: func(o *queuemodel.Owner) {
				if m.record.owner == o.String() {
					m.record = said{}
				}
			},
			Actions: map[string]func(*rapid.T, *queuemodel.Owner){"tell": m.tell, "resign": m.askToResign},
		}
	})
}

func priorityOf(o *queuemodel.Owner) int { return o.Index%3 - 1 }

// leads reports whether the record is that of the holder.
func (m *model) leads() bool { return m.record.owner != "" && m.record.owner == m.Holder }

// enters draws whether a candidate preempts.
func (m *model) enters(t *rapid.T, o *queuemodel.Owner) {
	m.say.priority, m.say.preempt = priorityOf(o), rapid.Bool().Draw(t, "preempts")
	if m.say.preempt && m.leads() && m.record.priority < m.say.priority {
		m.record.asked = true
	}
	m.priority[o.String()] = m.say.priority
}

// number returns the number of a candidate that joins: it is behind all of its priority.
func (m *model) number(o *queuemodel.Owner) int64 {
	number := m.Now*1000 - int64(priorityOf(o))*step
	for _, p := range m.Queue {
		if m.priority[p.Owner] == priorityOf(o) {
			number = max(number, p.Number+1)
		}
	}
	return number
}

func (m *model) tell(t *rapid.T, o *queuemodel.Owner) {
	id, leads := o.String(), m.Holder == o.String()
	if leads && !m.Came {
		return // it does not know that it leads
	}
	m.say.priority = priorityOf(o)
	reply := m.Do(t, m.r.tell(id, "PUBLISH", o.Token, 0))
	if leads {
		if m.record.owner != id {
			m.record = said{owner: id, token: o.Token, priority: priorityOf(o)}
		}
		if whole := (modelLease + recordLife).Milliseconds(); m.record.life == 0 || m.record.life-m.Now < whole/2 {
			m.record.life = m.Now + whole
		}
	}
	if (reply[0] == int64(1)) != leads || leads && (reply[3] != "") != m.record.asked {
		t.Fatalf("reply %v, leads %v, asked %v", reply, leads, m.record.asked)
	}
}

// askToResign asks the leader of some term, which may be over.
func (m *model) askToResign(t *rapid.T, o *queuemodel.Owner) {
	reply := m.Do(t, m.r.ask(o.Token, "PUBLISH", "somebody"))
	leads := o.Token != 0 && m.leads() && m.record.token == o.Token
	m.record.asked = m.record.asked || leads
	if (reply[0] == int64(1)) != leads {
		t.Fatalf("reply %v, leads %v", reply, leads)
	}
}

// check compares the record with Redis. In the model too, candidates stand by priority.
func (m *model) check(t *rapid.T) {
	if m.Now >= m.record.life {
		m.record = said{}
	}
	for i := 1; i < len(m.Queue); i++ {
		if before, p := m.priority[m.Queue[i-1].Owner], m.priority[m.Queue[i].Owner]; before < p {
			t.Fatalf("a candidate of priority %d is before one of %d", before, p)
		}
	}
	says := m.RDB.HMGet(context.Background(), m.r.at.Record, "owner", "priority", "asked").Val()
	if m.record.owner == "" && says[0] == nil {
		return
	}
	if says[0] != m.record.owner || says[1] != strconv.Itoa(m.record.priority) || (says[2] != nil) != m.record.asked {
		t.Fatalf("the record is %v, want %+v", says, m.record)
	}
}
