// These tests run each script in each state, while time stands still: they show what it replies, what
// it leaves, and that a second run is safe.

package fairlock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/scripttest"
)

const (
	lockKey  = "{n}"
	tokenKey = "token:{n}"
	queueKey = "queue:{n}"
	aliveKey = "alive:{n}"
	openKey  = "opened:{n}"

	clientA = "6e0e2d3c-0000-4000-8000-000000000001"
	clientB = "6e0e2d3c-0000-4000-8000-000000000002"

	mine   = clientA + ":1"
	mine2  = clientA + ":2"
	others = clientB + ":1"
	third  = clientB + ":2"
)

// These are the scripts that all locks with a queue share.
var (
	some          = newResource(new(engine.Engine), "n", "n", new(hold.Settings))
	enterSource   = some.Enter(hold.Entry{}).Script.Source()
	lookSource    = some.Look(hold.Owner{}).Script.Source()
	freeSource    = some.Free(hold.Owner{}, "").Script.Source()
	releaseSource = some.ReleaseOf("", "").Script.Source()
)

// state is what is in Redis. Times are in ms from now.
type state struct {
	holder string // "" for nobody
	count  int
	ttl    int64 // of the lock; -1 for no expiry
	token  int64
	queue  []place // in the order of the queue
}

type place struct {
	owner  string
	number int64
	kept   int64 // ms from now; below 0: the place is over
}

// free is a lock that nobody holds, with these places in the queue.
func free(queue ...place) state { return state{queue: queue} }

// held is a lock that holder holds, with the token 7.
func held(holder string, count int, ttl int64, queue ...place) state {
	return state{holder, count, ttl, 7, queue}
}

// Put puts the state to an empty server.
func (s state) Put(t testing.TB, rdb redis.UniversalClient) {
	ctx := t.Context()
	now := rdb.Time(ctx).Val().UnixMilli()
	if s.holder != "" {
		rdb.HSet(ctx, lockKey, s.holder, s.count)
		if s.ttl > 0 {
			rdb.PExpire(ctx, lockKey, time.Duration(s.ttl)*time.Millisecond)
		}
	}
	if s.token != 0 {
		rdb.Set(ctx, tokenKey, s.token, time.Minute)
	}
	for _, p := range s.queue {
		rdb.ZAdd(ctx, queueKey, redis.Z{Member: p.owner, Score: float64(p.number)})
		rdb.ZAdd(ctx, aliveKey, redis.Z{Member: p.owner, Score: float64(now + p.kept)})
		rdb.PExpire(ctx, queueKey, 30*time.Second)
		rdb.PExpire(ctx, aliveKey, 30*time.Second)
	}
}

// broken is a state in which another program has put something at a key.
type broken struct {
	state
	key string
}

func (b broken) Put(t testing.TB, rdb redis.UniversalClient) {
	b.state.Put(t, rdb)
	rdb.Del(t.Context(), b.key)
	rdb.LPush(t.Context(), b.key, "precious")
	rdb.PExpire(t.Context(), b.key, time.Minute)
}

// look returns what is in Redis as text: "holder=count ttl | owner kept, ...". It fails the test if
// something that should have an expiry has none.
func look(t testing.TB, rdb *redis.Client) string {
	t.Helper()
	ctx := t.Context()
	now := rdb.Time(ctx).Val().UnixMilli()
	var b strings.Builder
	for holder, count := range rdb.HGetAll(ctx, lockKey).Val() {
		ttl := rdb.PTTL(ctx, lockKey).Val()
		fmt.Fprintf(&b, "%s=%s %d", short(holder), count, ttl.Milliseconds())
		if ttl == -1 {
			b.WriteString("-1")
		}
	}
	b.WriteString(" |")
	for _, owner := range rdb.ZRange(ctx, queueKey, 0, -1).Val() {
		fmt.Fprintf(&b, " %s %d", short(owner), int64(rdb.ZScore(ctx, aliveKey, owner).Val())-now)
	}
	if q, a := rdb.ZCard(ctx, queueKey).Val(), rdb.ZCard(ctx, aliveKey).Val(); q != a {
		t.Errorf("%d in the queue, %d kept", q, a)
	}
	for _, key := range []string{queueKey, aliveKey} {
		if rdb.PTTL(ctx, key).Val() == -1 {
			t.Errorf("%s has no expiry", key)
		}
	}
	for _, key := range five {
		if rdb.Type(ctx, key).Val() == "list" {
			b.WriteString(" broken")
		}
	}
	return b.String()
}

func short(owner string) string {
	return map[string]string{mine: "mine", mine2: "mine2", others: "others", third: "third"}[owner]
}

type row = scripttest.Row

// These are the keys of enter and of release, of look, and of free.
var (
	five   = []string{lockKey, tokenKey, queueKey, aliveKey, openKey}
	looked = []string{lockKey, queueKey, aliveKey}
	freed  = []string{lockKey, queueKey}
)

// entering returns the arguments of enter.
func entering(owner string, keep, number, ifFree, reserve int, successor string, behind ...any) []any {
	return append([]any{"now+1", owner, 30_000, 604_800_000, keep, number, ifFree, reserve, successor, "PUBLISH", "open:{n}", "grant:{n}"}, behind...)
}

// releasing returns the arguments of release.
func releasing(notAfter any, publish string, openly int, leaves, joins string) []any {
	return []any{notAfter, mine, publish, "open:{n}", "grant:{n}", openly, leaves, 604_800_000, joins, 5_000}
}

func late(args []any) []any { return append([]any{"now-1"}, args[1:]...) }

func TestEnterScript(t *testing.T) {
	wait := func(owner string) []any { return entering(owner, 5_000, 0, 0, 0, "") }
	again := func(owner string, number int, behind ...any) []any {
		return entering(owner, 5_000, number, 0, 0, "", behind...)
	}
	next := func(owner, successor string) []any { return entering(owner, 5_000, 11, 2, 0, successor) }
	follow, try := entering(mine, 5_000, 0, 1, 0, ""), entering(mine, 0, 0, 0, 0, "")
	runTable(t, enterSource, five, []row{
		{"absent", free(), wait(mine), "[1 now 30000 now 0 0]", "mine=1 30000 |", ""},
		{"absent, try", free(), try, "[1 now 30000 now 0 0]", "mine=1 30000 |", ""},
		{"absent, others wait", free(place{others, 11, 3000}), wait(mine), "[0 now 3000 now - -]", " | others 3000 mine 5000", ""},
		{"absent, others wait, try", free(place{others, 11, 3000}), try, "[0 now 3000 0 - -]", " | others 3000", ""},
		{"absent, the dead wait", free(place{others, 11, -1}, place{third, 12, -1}), wait(mine), "[1 now 30000 now 0 0]", "mine=1 30000 |", ""},
		{"absent, the dead wait, try", free(place{others, 11, -1}), try, "[1 now 30000 now 0 0]", "mine=1 30000 |", ""},
		{"absent, dead and living wait", free(place{others, 11, -1}, place{third, 12, 2000}), wait(mine), "[0 now 2000 now - -]", " | third 2000 mine 5000", ""},
		{"absent, I am first", free(place{mine, 11, 1000}, place{others, 12, 3000}), again(mine, 11), "[1 now 30000 now 0 0]", "mine=1 30000 | others 3000", ""},
		{"absent, I am first and dead", free(place{mine, 11, -1}, place{others, 12, 3000}), again(mine, 11), "[1 now 30000 now 0 0]", "mine=1 30000 | others 3000", ""},
		{"absent, I am second", free(place{others, 11, 3000}, place{mine, 12, 1000}), again(mine, 12), "[0 now 3000 12 - -]", " | others 3000 mine 5000", ""},
		{"absent, I was first", free(place{others, 12, 3000}), again(mine, 11), "[1 now 30000 now 0 0 mine]", "mine=1 30000 | others 3000", "[1 now 30000 now 0 0]"},
		{"absent, I was second", free(place{others, 11, 3000}), again(mine, 12), "[0 now 3000 12 - - mine]", " | others 3000 mine 5000", "[0 now 3000 12 - -]"},
		{"absent, some of mine before me", free(), follow, "[0 now 1 now - -]", " | mine 5000", ""},
		{"absent, keeping others", free(place{mine, 11, 1000}, place{mine2, 12, 1000}), again(mine, 11, mine2, third), "[1 now 30000 now 0 0 third]", "mine=1 30000 | mine2 5000", ""},
		{"mine", held(mine, 1, 10_000), wait(mine), "[1 now 30000 7 0 0]", "mine=1 30000 |", ""},
		{"mine, counted", held(mine, 3, 60_000), wait(mine), "[1 now 60000 7 0 0]", "mine=3 60000 |", ""},
		{"mine, try", held(mine, 1, 10_000), try, "[1 now 30000 7 0 0]", "mine=1 30000 |", ""},
		{"handed to me", held(mine, 0, 3_000, place{others, 12, 3000}), again(mine, 11), "[1 now 30000 now 0 0]", "mine=1 30000 | others 3000", ""},
		{"handed to me, some of mine before me", held(mine, 0, 3_000), follow, "[1 now 30000 now 0 0]", "mine=1 30000 |", ""},
		{"handed to one of mine", held(mine2, 0, 3_000), wait(mine), "[0 now 3000 now mine2 - mine2]", "mine2=0 3000 | mine 5000", ""},
		{"handed to another", held(others, 0, 3_000), wait(mine), "[0 now 3000 now others -]", "others=0 3000 | mine 5000", ""},
		{"another's", held(others, 1, 10_000), wait(mine), "[0 now 10000 now others -]", "others=1 10000 | mine 5000", ""},
		{"another's, try", held(others, 1, 10_000), try, "[0 now 10000 0 others -]", "others=1 10000 |", ""},
		{"another's, without end", held(others, 1, -1), wait(mine), "[0 now -1 now others -]", "others=1 0-1 | mine 5000", ""},
		{"another's, keeping others", held(others, 1, 10_000, place{mine, 11, 1000}, place{mine2, 12, 1000}), again(mine, 11, mine2, third), "[0 now 10000 11 others - third]", "others=1 10000 | mine 5000 mine2 5000", ""},
		{"after one from the future", held(others, 1, 10_000, place{third, 4_000_000_000_000_001, 1000}), wait(mine), "[0 now 10000 4000000000000002 others -]", "others=1 10000 | third 1000 mine 5000", ""},
		{"no number ends in 0", held(others, 1, 10_000, place{third, 4_000_000_000_000_009, 1000}), wait(mine), "[0 now 10000 4000000000000011 others -]", "others=1 10000 | third 1000 mine 5000", ""},
		{"absent, with a successor", free(place{mine, 11, 3000}, place{others, 12, 3000}), next(mine, mine2), "[1 now 30000 now 0 now]", "mine=1 30000 | others 3000 mine2 5000", ""},
		{"handed to me, with a successor", held(mine, 0, 3_000), next(mine, mine2), "[1 now 30000 now 0 now]", "mine=1 30000 | mine2 5000", ""},
		{"mine, with a successor that has left", held(mine, 1, 10_000), next(mine, mine2), "[1 now 30000 7 0 0]", "mine=1 30000 |", ""},
		{"another's, with a successor", held(others, 1, 10_000, place{mine, 11, 1000}), next(mine, mine2), "[0 now 10000 11 others -]", "others=1 10000 | mine 5000", ""},
		{"late", free(), late(wait(mine)), "[-1 now]", " |", ""},
		{"late, handed to me", held(mine, 0, 3_000), late(wait(mine)), "[-1 now]", "mine=0 3000 |", ""},
		{"a broken lock", broken{free(), lockKey}, wait(mine), "WRONGTYPE", " | broken", ""},
		{"a broken token", broken{free(), tokenKey}, wait(mine), "WRONGTYPE", " | broken", ""},
		{"a broken queue", broken{free(), queueKey}, wait(mine), "WRONGTYPE", " | broken", ""},
		{"broken ends of places", broken{free(), aliveKey}, wait(mine), "WRONGTYPE", " | broken", ""},
	})
}

// Those that come in one microsecond with one priority have places with numbers of their own, none of which ends in 0.
func TestNoTwoThatComeWithAPriorityHaveOneNumber(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
		held(others, 1, 10_000).Put(t, rdb)
		r := newResource(new(engine.Engine), "n", "n", new(hold.Settings))
		r.ahead = ahead(1)
		seen := make(map[any]bool)
		for i := range int64(12) {
			call := r.Enter(hold.Entry{Owner: hold.NewOwner(clientA, i+1), Length: time.Second})
			number := eval(t, rdb, call.Script.Source(), five, append([]any{"now+1"}, call.Args...)...).([]any)[3]
			if seen[number] || number.(int64)%10 == 0 {
				t.Errorf("number %v after %v", number, seen)
			}
			seen[number] = true
		}
	})
}

func TestLookScript(t *testing.T) {
	args := []any{"now+1", mine, 5_000}
	runTable(t, lookSource, looked, []row{
		{"another's", held(others, 1, 10_000, place{mine, 11, 1000}), args, "[1 now 10000 1936114680070145]", "others=1 10000 | mine 5000", ""},
		{"another's, without end", held(others, 1, -1, place{mine, 11, 1000}), args, "[1 now -1 1936114680070145]", "others=1 0-1 | mine 5000", ""},
		{"another's, others wait", held(others, 1, 10_000, place{third, 10, 2000}, place{mine, 11, 1000}), args, "[1 now 10000 1936114680070145]", "others=1 10000 | third 2000 mine 5000", ""},
		{"another's, the place has lapsed", held(others, 1, 10_000, place{mine, 11, -1}), args, "[1 now 10000 1936114680070145]", "others=1 10000 | mine 5000", ""},
		{"another's, the place is lost", held(others, 1, 10_000), args, "[0 now]", "others=1 10000 |", ""},
		{"another's, counted 0 as handed over", held(others, 0, 3_000, place{mine, 11, 1000}), args, "[0 now]", "others=0 3000 | mine 1000", ""},
		{"handed to one of mine", held(mine2, 0, 3_000, place{mine, 11, 1000}), args, "[0 now]", "mine2=0 3000 | mine 1000", ""},
		{"handed to me", held(mine, 0, 3_000), args, "[0 now]", "mine=0 3000 |", ""},
		{"mine", held(mine, 1, 3_000, place{mine, 11, 1000}), args, "[0 now]", "mine=1 3000 | mine 1000", ""},
		{"absent", free(place{mine, 11, 1000}), args, "[0 now]", " | mine 1000", ""},
		{"late", held(others, 1, 10_000, place{mine, 11, 1000}), []any{"now-1", mine, 5_000}, "[-1 now]", "others=1 10000 | mine 1000", ""},
		{"a broken lock", broken{free(), lockKey}, args, "WRONGTYPE", " | broken", ""},
		{"broken ends of places", broken{held(others, 1, 1000), aliveKey}, args, "[0 now]", "others=1 1000 | broken", ""},
	})
}

// A look puts the end of the queue's keys off, so that they outlast a place that looks alone keep.
func TestALookKeepsTheQueue(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
		ctx := t.Context()
		held(others, 1, 10_000, place{mine, 11, 1000}).Put(t, rdb)
		for _, key := range []string{queueKey, aliveKey} {
			rdb.PExpire(ctx, key, 2*time.Second)
		}
		eval(t, rdb, lookSource, looked, "now+1", mine, 5_000)
		for _, key := range []string{queueKey, aliveKey} {
			if left := rdb.PTTL(ctx, key).Val(); left < 25*time.Second {
				t.Errorf("%s is kept for %v, and the place for 5 s", key, left)
			}
		}
	})
}

func TestReleaseScript(t *testing.T) {
	args := releasing(0, "PUBLISH", 0, "", "")
	silent := releasing(0, "NOPUBLISH", 0, "", "")
	both := releasing(0, "PUBLISH", 0, mine2, "")
	joins := releasing("now+1", "PUBLISH", 0, "", mine2)
	open := releasing(0, "PUBLISH", 1, "", "")
	runTable(t, releaseSource, five, []row{
		{"absent", free(), args, "[0 now]", " |", ""},
		{"mine", held(mine, 1, 10_000), args, "[1 now]", " |", "[0 now]"},
		{"mine, counted", held(mine, 5, 10_000), args, "[1 now]", " |", "[0 now]"},
		{"mine, others wait", held(mine, 1, 10_000, place{others, 11, 3000}, place{third, 12, 4000}), args, "[1 now 0 2]", "others=0 3000 | third 4000", "[0 now]"},
		{"mine, another of mine leaves too", held(mine, 1, 10_000, place{mine2, 11, 3000}, place{third, 12, 4000}), both, "[1 now 0 2]", "third=0 4000 |", "[0 now]"},
		{"mine, dead and living wait", held(mine, 1, 10_000, place{others, 11, -1}, place{third, 12, 4000}), args, "[1 now 0 2]", "third=0 4000 |", "[0 now]"},
		{"mine, the dead wait", held(mine, 1, 10_000, place{others, 11, -1}), args, "[1 now]", " |", "[0 now]"},
		{"mine, others wait, no right to publish", held(mine, 1, 10_000, place{others, 11, 3000}), silent, "[1 now 0 2]", "others=0 3000 |", "[0 now]"},
		{"mine, no right to publish", held(mine, 1, 10_000), silent, "[1 now]", " |", "[0 now]"},
		{"handed to me", held(mine, 0, 3_000, place{third, 12, 4000}), args, "[1 now 0 2]", "third=0 4000 |", "[0 now]"},
		{"waiting", held(others, 1, 10_000, place{mine, 11, 3000}, place{third, 12, 4000}), args, "[0 now]", "others=1 10000 | third 4000", ""},
		{"waiting, and the lock ran out", free(place{mine, 11, 3000}, place{third, 12, 4000}), args, "[0 now]", "third=0 4000 |", ""},
		{"another's", held(others, 1, 10_000), args, "[0 now]", "others=1 10000 |", ""},
		{"mine, in the open, others wait", held(mine, 1, 10_000, place{others, 11, 3000}), open, "[1 now 0 2]", "others=0 3000 |", "[0 now]"},
		{"mine, in the open", held(mine, 1, 10_000), open, "[1 now]", " |", "[0 now]"},
		{"mine, another of mine joins", held(mine, 1, 10_000), joins, "[1 now now]", "mine2=0 5000 |", "[0 now]"},
		{"mine, another of mine joins, others wait", held(mine, 1, 10_000, place{others, 11, 3000}), joins, "[1 now now 2]", "others=0 3000 | mine2 5000", "[0 now]"},
		{"mine, another of mine has joined by itself", held(mine, 1, 10_000, place{others, 11, 3000}, place{mine2, 12, 1000}), joins, "[1 now 12 2]", "others=0 3000 | mine2 5000", "[0 now]"},
		{"mine, another of mine joins late", held(mine, 1, 10_000, place{others, 11, 3000}), releasing("now-1", "PUBLISH", 0, "", mine2), "[1 now 0 2]", "others=0 3000 |", "[0 now]"},
		{"mine, a broken queue", broken{held(mine, 1, 1000), queueKey}, args, "[1 now]", " | broken", "[0 now]"},
		{"another's, another of mine joins", held(others, 1, 10_000, place{third, 11, 3000}), joins, "[0 now]", "others=1 10000 | third 3000", ""},
	})
	runTable(t, releaseSource, []string{lockKey}, []row{
		{"one key, mine", held(mine, 1, 10_000, place{others, 11, 3000}), args, "[1 now]", " | others 3000", "[0 now]"},
		{"one key, another's", held(others, 1, 10_000, place{mine, 11, 3000}), args, "[0 now]", "others=1 10000 | mine 3000", ""},
	})
}

func TestFreeScript(t *testing.T) {
	args, silent := []any{0, mine, "PUBLISH", "open:{n}"}, []any{0, mine, "NOPUBLISH", "open:{n}"}
	runTable(t, freeSource, freed, []row{
		{"absent", free(), args, "[0 0]", " |", ""},
		{"mine", held(mine, 1, 10_000), args, "1", " |", "[0 0]"},
		{"mine, counted", held(mine, 5, 10_000), args, "1", " |", "[0 0]"},
		{"handed to me", held(mine, 0, 3_000), args, "1", " |", "[0 0]"},
		{"mine, no right to publish", held(mine, 1, 10_000), silent, "1", " |", "[0 0]"},
		{"mine, others wait", held(mine, 1, 10_000, place{others, 11, 3000}), args, "[2 0]", "mine=1 10000 | others 3000", ""},
		{"mine, the dead wait", held(mine, 1, 10_000, place{others, 11, -1}), args, "[2 0]", "mine=1 10000 | others -1", ""},
		{"mine, a broken queue", broken{held(mine, 1, 1000), queueKey}, args, "1", " | broken", "[0 0]"},
		{"another's", held(others, 1, 10_000), args, "[0 0]", "others=1 10000 |", ""},
		{"another's, others wait", held(others, 1, 10_000, place{third, 11, 3000}), args, "[2 0]", "others=1 10000 | third 3000", ""},
	})
	runTable(t, freeSource, []string{lockKey}, []row{
		{"one key, mine", held(mine, 1, 10_000, place{others, 11, 3000}), args, "1", " | others 3000", "[0 0]"},
		{"one key, another's", held(others, 1, 10_000, place{mine, 11, 3000}), args, "[0 0]", "others=1 10000 | mine 3000", ""},
	})
}

// A user without the right to leave the queue, who is in it, is refused the lock, and leaves nothing held.
func TestAUserWithoutTheRightToLeaveTheQueueIsNotGrantedTheLock(t *testing.T) {
	first := place{mine, 11, 3000}
	for what, before := range map[string]state{"free": free(first), "handed to it": held(mine, 0, 3_000, first)} {
		rdb := redistest.Server(t).Client(t)
		ctx := t.Context()
		before.Put(t, rdb)
		rdb.Do(ctx, "acl", "setuser", "stays", "on", ">stays", "~*", "&*", "+@all", "-zrem")
		conn := rdb.Conn()
		defer conn.Close()
		redistest.Must(t, conn.AuthACL(ctx, "stays", "stays").Err())
		reply, err := conn.Eval(ctx, enterSource, five, scripttest.At(t, rdb, entering(mine, 5_000, 0, 2, 0, ""))...).Result()
		if err == nil {
			t.Errorf("%s: granted: %v", what, reply)
		}
		if rdb.Exists(ctx, lockKey).Val() != 0 {
			t.Errorf("%s: it is left held by %v for %v", what, rdb.HGetAll(ctx, lockKey).Val(), rdb.PTTL(ctx, lockKey).Val())
		}
	}
}

// A release in the open leaves the lock, for a moment, to the Clients that listen outside the
// queue. Clients in the queue, and the Client that releases, are not among them.
func TestOpenRelease(t *testing.T) {
	for outsiders := range 2 {
		scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
			held(mine, 1, 10_000, place{others, 11, 3000}).Put(t, rdb)
			for range 3 { // three Clients, in the queue or not
				listen(t, rdb, "open:{n}", "grant:{n}")
			}
			for range outsiders {
				listen(t, rdb, "open:{n}")
			}
			eval(t, rdb, releaseSource, five, releasing(0, "PUBLISH", 1, "", "")...)
			left, free := rdb.PTTL(t.Context(), openKey).Val(), rdb.Exists(t.Context(), lockKey).Val() == 0
			if open := left > 0; open && left > 3*time.Millisecond || free != (outsiders > 0) {
				t.Errorf("%d outsiders: free %v, open for %v", outsiders, free, left)
			}
			enter := func() []any { return eval(t, rdb, enterSource, five, entering(others, 5_000, 0, 2, 0, "")...).([]any) }
			for reply := enter(); reply[0] != int64(1); reply = enter() {
				if hint := reply[2].(int64); hint < 1 || hint > 3 {
					t.Fatalf("%d outsiders: asked to come again in %d ms", outsiders, hint)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// listen subscribes to channels. The returned function ends that, and returns what was heard.
func listen(t *testing.T, rdb *redis.Client, channels ...string) func() []string {
	t.Helper()
	sub := rdb.Subscribe(t.Context(), channels...)
	t.Cleanup(func() { sub.Close() })
	var heard []string
	for range channels {
		redistest.Must(t, redistest.Err(sub.Receive(t.Context())))
	}
	messages := sub.Channel()
	return func() []string {
		synctest.Wait()
		sub.Close()
		for m := range messages {
			heard = append(heard, m.Payload)
		}
		return heard
	}
}

// Those outside the queue are told of a hand-over, unless they look again soon by themselves: the
// hold that ends could have lasted for no longer than a place.
func TestThoseOutsideAreToldOfAHandOverByALongHold(t *testing.T) {
	const keep = 5_000
	waits := place{others, 11, 3000}
	for _, tc := range []struct {
		what   string
		before state
		joins  string
		client bool // another Client listens, and nobody else
		told   bool
	}{
		{"a long hold", held(mine, 1, 2*keep, waits), "", false, true},
		{"a long hold, another of mine joins", held(mine, 1, 2*keep, waits), mine2, false, true},
		{"a long hold, Clients listen", held(mine, 1, 2*keep, waits), "", true, false},
		{"as long as a place", held(mine, 0, keep, waits), "", false, false},
		{"a short hold", held(mine, 0, 1000, waits), "", false, false},
		{"without an end", held(mine, 1, -1, waits), "", false, true},
		{"it ran out", free(place{mine, 10, 3000}, waits), "", false, true},
	} {
		scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
			tc.before.Put(t, rdb)
			channels := []string{"open:{n}"}
			if tc.client {
				channels = append(channels, "grant:{n}")
			}
			heard := listen(t, rdb, channels...)
			eval(t, rdb, releaseSource, five, releasing("now+1", "PUBLISH", 0, "", tc.joins)...)
			if told := slices.Contains(heard(), "00"); told != tc.told {
				t.Errorf("%s: told %v", tc.what, told)
			}
			if holder := rdb.HGet(t.Context(), lockKey, others).Val(); holder != "0" {
				t.Errorf("%s: it was not handed over", tc.what)
			}
		})
	}
}

// A release that takes a place puts the end of the queue's keys off, unless another owner has done
// that in the same second of the server's clock.
func TestTheFirstToJoinInASecondPutsTheEndOfTheQueueOff(t *testing.T) {
	const second = int64(1_000_000)
	var dead []place
	for i := range int64(70) { // more than one run removes
		dead = append(dead, place{fmt.Sprint(clientB, ":", 100+i), i - 70, -1})
	}
	for _, tc := range []struct {
		what  string
		queue []place // numbers from now, in microseconds
		off   bool
	}{
		{"one has come in this second", []place{{others, -1, 3000}}, false},
		{"one has come before", []place{{others, -second, 3000}}, true},
		{"one came before the clock was set back", []place{{others, 7 * second, 3000}}, true},
		{"those who have come in this second are dead", dead, true},
		{"the last one has come in this second", []place{{others, -9 * second, 3000}, {third, -1, 3000}}, false},
	} {
		scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
			ctx := t.Context()
			time.Sleep(time.Second / 2) // a bubble begins with a second
			for i := range tc.queue {
				tc.queue[i].number += time.Now().UnixMicro()
			}
			held(mine, 1, 10_000, tc.queue...).Put(t, rdb)
			for _, key := range []string{queueKey, aliveKey} {
				rdb.PExpire(ctx, key, 10*time.Second)
			}
			eval(t, rdb, releaseSource, five, releasing("now+1", "PUBLISH", 0, "", mine2)...)
			for _, key := range []string{queueKey, aliveKey} {
				if left := rdb.PTTL(ctx, key).Val(); left <= 0 || (left > 10*time.Second) != tc.off {
					t.Errorf("%s: %s stays for %v", tc.what, key, left)
				}
			}
		})
	}
}

// What an acquisition and a release cost the server does not depend on the number of waiters.
func TestAsManyCommandsForAnyNumberOfWaiters(t *testing.T) {
	scripttest.OnMini(t, func(t *testing.T, mini *redistest.MiniServer, rdb *redis.Client) {
		for _, tc := range []struct {
			what   string
			before state
			source string
			args   []any
		}{
			{"join", held(others, 1, 10_000), enterSource, entering(mine, 5_000, 0, 0, 0, "")},
			{"ask again", held(others, 1, 10_000, place{mine, 1 << 40, 3000}), enterSource, entering(mine, 5_000, 1<<40, 0, 0, "")},
			{"have it", free(place{mine, 1, 3000}), enterSource, entering(mine, 5_000, 1, 0, 64, mine2)},
			{"hand it over", held(mine, 1, 10_000), releaseSource, releasing("now+1", "PUBLISH", 0, "", mine2)},
		} {
			// more reports whether the script has more than n commands while so many others wait.
			more := func(waiters, n int) bool {
				rdb.FlushAll(t.Context())
				before := tc.before
				for i := range waiters {
					before.queue = append(before.queue, place{fmt.Sprint(clientB, ":", 10+i), int64(10 + i), 3000})
				}
				before.Put(t, rdb)
				disarm := mini.FailInside(n + 1)
				rdb.Eval(t.Context(), tc.source, five, scripttest.At(t, rdb, tc.args)...)
				return disarm()
			}
			n := 0
			for more(10, n) {
				n++
			}
			if more(2000, n) {
				t.Errorf("%s: %d commands beside 10 waiters, and more beside 2 000", tc.what, n)
			}
		}
	})
}

// A grant reserves tokens between the last given token and the clock. No reserved token is ahead of
// the clock, and all are greater than the last.
func TestReservedTokens(t *testing.T) {
	for _, tc := range []struct {
		what        string
		last        int64 // in us before now; 0: none
		reserve     int
		java        bool  // a program that is no Client listens
		token, more int64 // the token, in us before now, and how many more are reserved
	}{
		{"the first", 0, 64, false, 0, 0},
		{"none wanted", 1_000, 0, false, 0, 0},
		{"after an old one", 1_000_000, 64, false, 64, 64},
		{"after one that is just old enough", 65, 64, false, 64, 64},
		{"after a young one", 10, 64, false, 9, 9},
		{"after one of the microsecond before", 1, 64, false, 0, 0},
		{"after one ahead of the clock", -5, 64, false, -6, 0},
		{"after an old one, while Java listens", 1_000_000, 64, true, 0, 0},
	} {
		scripttest.OnMini(t, func(t *testing.T, _ *redistest.MiniServer, rdb *redis.Client) {
			now := time.Now().UnixMicro()
			if tc.java {
				listen(t, rdb, "open:{n}")
			}
			if tc.last != 0 {
				rdb.Set(t.Context(), tokenKey, now-tc.last, time.Minute)
			}
			reply := eval(t, rdb, enterSource, five, entering(mine, 5_000, 0, 2, tc.reserve, "")...).([]any)
			if token, more := reply[3].(int64), reply[4].(int64); token != now-tc.token || more != tc.more {
				t.Errorf("%s: token %d before now and %d more, want %d and %d", tc.what, now-token, more, tc.token, tc.more)
			}
			if stored, _ := rdb.Get(t.Context(), tokenKey).Int64(); stored != now-tc.token+tc.more {
				t.Errorf("%s: the last given is %d before now, want %d", tc.what, now-stored, tc.token-tc.more)
			}
		})
	}
}

func TestQueueScripts(t *testing.T) {
	keys := []string{queueKey, aliveKey}
	some := held(mine, 1, 10_000, place{others, 11, -1}, place{third, 12, 2000}, place{mine2, 13, 2000})
	same := "mine=1 10000 | others -1 third 2000 mine2 2000"
	runTable(t, queueScript.Source(), keys, []row{
		{"empty", free(), []any{0, "-inf", 3}, "[1 now -]", " |", ""},
		{"some", some, []any{0, "-inf", 4}, "[1 now - third mine2]", same, ""},
		{"a page of them", some, []any{0, "-inf", 2}, "[1 now - third]", same, ""},
		{"the next", some, []any{0, "(12", 2}, "[1 now - mine2]", same, ""},
	})
	runTable(t, placeScript.Source(), keys, []row{
		{"empty", free(), []any{0, mine}, "[1 now 0 -1]", " |", ""},
		{"some", some, []any{0, mine2}, "[1 now 2 2]", same, ""},
		{"not waiting", some, []any{0, mine}, "[1 now 2 -1]", same, ""},
	})
}

func runTable(t *testing.T, source string, keys []string, rows []row) {
	t.Helper()
	scripttest.Table{Source: source, Keys: keys, Word: word, Left: look}.Run(t, rows)
}

// eval fails the test unless the script gives a reply.
func eval(t *testing.T, rdb *redis.Client, source string, keys []string, args ...any) any {
	t.Helper()
	reply, err := rdb.Eval(t.Context(), source, keys, scripttest.At(t, rdb, args)...).Result()
	redistest.Must(t, err)
	return reply
}

// word returns "now" for a time, or a token or a number made of it, a short owner, and "-" for an empty text.
func word(_ int, v any) string {
	switch v := v.(type) {
	case int64:
		if near := v - time.Now().UnixMicro(); near >= 0 && near < 10 {
			return "now"
		}
	case string:
		return cmp.Or(short(v), "-")
	}
	return fmt.Sprint(v)
}
