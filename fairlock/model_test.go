// This file checks the lock and its queue against a plain model of both.

package fairlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const modelLease = 8 * time.Second

// model is the lock as it should be. Times are in ms of the server's clock.
type model struct {
	now    int64
	holder string
	came   bool // the holder has confirmed
	until  int64
	queue  []waiting
	life   int64 // of the queue's keys
}

type waiting struct {
	owner  string
	number int64
	kept   int64
}

func (m *model) pass(ms int64) {
	m.now += ms
	if m.holder != "" && m.now >= m.until {
		m.holder = ""
	}
	if m.now >= m.life {
		m.queue = nil
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

// enter returns whether owner is granted the lock, and which owners are to be nudged.
func (m *model) enter(owner string, number int64, wait, follows bool, behind []string) (granted bool, nudge []string) {
	if m.at(owner) < 0 && number > 0 && m.holder != owner {
		nudge = append(nudge, owner)
	}
	if m.holder != owner {
		m.dropDead(owner)
		first := len(m.queue) == 0 || m.queue[0].owner == owner ||
			m.at(owner) < 0 && number > 0 && number < m.queue[0].number
		if m.holder == "" && first && !follows {
			m.holder, m.until = owner, 0
		}
	}
	if m.holder == owner {
		m.came = true
		m.until = max(m.until, m.now+modelLease.Milliseconds())
		m.leaveQueue(owner)
		return true, append(nudge, m.tend(behind)...)
	}
	if !wait {
		return false, nil
	}
	if i := m.at(owner); i >= 0 {
		m.queue[i].kept = m.now + queueLease.Milliseconds()
	} else {
		if number == 0 {
			number = m.now * 1000
			if n := len(m.queue); n > 0 {
				number = max(number, m.queue[n-1].number+1)
			}
			if number%10 == 0 {
				number++
			}
		}
		m.queue = append(m.queue, waiting{owner, number, m.now + queueLease.Milliseconds()})
		// The clock stands still between actions. So numbers may be equal once the queue has been
		// empty.
		slices.SortFunc(m.queue, func(a, b waiting) int {
			return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.owner, b.owner))
		})
	}
	m.life = m.now + 6*queueLease.Milliseconds()
	turn := m.holder
	if m.holder == "" {
		turn = m.queue[0].owner
	}
	if (m.holder == "" || !m.came) && turn != owner && turn[:36] == owner[:36] {
		nudge = append([]string{turn}, nudge...)
	}
	return false, append(nudge, m.tend(behind)...)
}

func (m *model) tend(behind []string) (lost []string) {
	if len(behind) > 0 {
		m.life = m.now + 6*queueLease.Milliseconds()
	}
	for _, owner := range behind {
		if i := m.at(owner); i >= 0 {
			m.queue[i].kept = m.now + queueLease.Milliseconds()
		} else {
			lost = append(lost, owner)
		}
	}
	return lost
}

// leave returns whether owner held the lock.
func (m *model) leave(owner string) bool {
	held := m.holder == owner
	if held {
		m.holder = ""
	}
	m.dropDead("")
	m.leaveQueue(owner)
	m.dropDead("")
	if m.holder == "" && len(m.queue) > 0 {
		m.holder, m.came, m.until = m.queue[0].owner, false, m.queue[0].kept
		m.leaveQueue(m.holder)
	}
	return held
}

// check compares the model with Redis.
func (m *model) check(t *rapid.T, rdb *redis.Client, at keys.FairLock) {
	ctx := context.Background()
	var want []string
	for _, w := range m.queue {
		want = append(want, fmt.Sprintf("%s %d", w.owner, w.kept))
	}
	var got []string
	for _, owner := range rdb.ZRange(ctx, at.Queue, 0, -1).Val() {
		got = append(got, fmt.Sprintf("%s %.0f", owner, rdb.ZScore(ctx, at.Alive, owner).Val()))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the queue is\n%q, want\n%q", got, want)
	}
	lock := map[string]string{}
	if m.holder != "" {
		lock[m.holder] = map[bool]string{false: "0", true: "1"}[m.came]
	}
	if got := rdb.HGetAll(ctx, at.Hash).Val(); fmt.Sprint(got) != fmt.Sprint(lock) {
		t.Fatalf("the lock is %v, want %v", got, lock)
	}
	if m.holder != "" {
		if got, want := rdb.PTTL(ctx, at.Hash).Val().Milliseconds(), m.until-m.now; got != want {
			t.Fatalf("time to live %d, want %d", got, want)
		}
	}
}

// Whatever calls come in whatever order, the lock is in the state of the model, and tokens grow.
func TestModel(t *testing.T) {
	redistest.Sequences(t)
	mini := redistest.Mini(t)
	rdb := mini.Client()
	start := time.Now().Truncate(time.Second)
	rapid.Check(t, func(t *rapid.T) { runModel(t, mini, rdb, start) })
}

func runModel(t *rapid.T, mini *redistest.MiniServer, rdb *redis.Client, start time.Time) {
	ctx := context.Background()
	mini.SetTime(start)
	rdb.FlushAll(ctx)
	at, err := keys.ForFairLock("n")
	if err != nil {
		t.Fatal(err)
	}
	r := newResource(new(engine.Engine), "n", "n", new(hold.Settings))
	m := &model{now: start.UnixMilli()}
	var owners []hold.Owner
	numbers := make(map[string]int64)
	var token, made int64
	for i := range 6 {
		made++
		owners = append(owners, hold.NewOwner([]string{clientA, clientB}[i%2], made))
	}
	renew := func(i int) { // each owner is used only once
		made++
		owners[i] = hold.NewOwner([]string{clientA, clientB}[i%2], made)
	}
	anyone := rapid.IntRange(0, len(owners)-1)

	enter := func(t *rapid.T, wait bool) {
		i := anyone.Draw(t, "owner")
		id := owners[i].String()
		var ask line.Ask
		call := r.Acquire(owners[i], modelLease)
		if wait {
			ask.Seq = numbers[id]
			ask.Follows = rapid.IntRange(0, 9).Draw(t, "follows") == 0
			for k := range owners {
				if k != i && k%2 == i%2 && rapid.Bool().Draw(t, "behind") {
					ask.Behind = append(ask.Behind, owners[k].String())
				}
			}
			call = r.Enter(hold.Entry{Owner: owners[i], Length: modelLease, Ask: ask})
		}
		confirmed := m.holder == id && m.came
		args := append([]any{int64(1) << 60}, call.Args...)
		reply, err := rdb.Eval(ctx, call.Script.Source(), call.Keys, args...).Slice()
		if err != nil {
			t.Fatal(err)
		}
		granted, nudge := m.enter(id, ask.Seq, wait, ask.Follows, ask.Behind)
		if (reply[0] == int64(1)) != granted {
			t.Fatalf("reply %v, granted %v", reply, granted)
		}
		told := reply[min(6, len(reply)):]
		if got, want := fmt.Sprint(told), fmt.Sprint(nudge); wait && got != want {
			t.Fatalf("nudged %s, want %s", got, want)
		}
		switch number := reply[3].(int64); {
		case granted && confirmed && number != token:
			t.Fatalf("token %d, was %d", number, token)
		case granted && !confirmed && number <= token:
			t.Fatalf("token %d after %d", number, token)
		case granted:
			token = number
		case wait && numbers[id] == 0:
			numbers[id] = number
		}
		m.check(t, rdb, at)
	}
	t.Repeat(map[string]func(*rapid.T){
		"wait":  func(t *rapid.T) { enter(t, true) },
		"again": func(t *rapid.T) { enter(t, true) },
		"try":   func(t *rapid.T) { enter(t, false) },
		"leave": func(t *rapid.T) {
			i := anyone.Draw(t, "owner")
			call := r.Release(owners[i], "PUBLISH")
			reply, err := rdb.Eval(ctx, call.Script.Source(), call.Keys, append([]any{0}, call.Args...)...).Slice()
			if err != nil {
				t.Fatal(err)
			}
			if held := m.leave(owners[i].String()); (reply[0] == int64(1)) != held {
				t.Fatalf("reply %v, held %v", reply, held)
			}
			renew(i)
			m.check(t, rdb, at)
		},
		"time": func(t *rapid.T) {
			ms := rapid.SampledFrom([]int64{1, 700, 1000, 4999, 5001, 31000}).Draw(t, "ms")
			m.pass(ms)
			mini.SetTime(time.UnixMilli(m.now))
			m.check(t, rdb, at)
		},
	})
}
