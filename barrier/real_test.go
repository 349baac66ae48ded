// These tests run on real servers, with parties that are killed and with replies that are lost. An
// oracle looks at what all parties of each generation were told.

package barrier

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// of returns the barrier of that name for n parties.
func of(e *engine.Engine, name string, n int, options ...Option) *Barrier {
	return New(e, name, name, n, hold.Defaults(), options)
}

// journal is what all parties were told, by generation.
type journal struct {
	mu       sync.Mutex
	arrivals map[int64]map[int]bool // of those that were told that it has tripped
	broken   map[int64]bool
	unknown  int
}

// note notes what a party was told. It returns an error if parties of a generation disagree.
func (j *journal) note(trip Trip, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	g := trip.Generation
	switch {
	case errors.Is(err, errs.Unknown):
		j.unknown++
		return nil
	case err == nil && j.arrivals[g][trip.Arrival]:
		return fmt.Errorf("generation %d has two parties with the arrival %d", g, trip.Arrival)
	case err == nil:
		if j.arrivals[g] == nil {
			j.arrivals[g] = map[int]bool{}
		}
		j.arrivals[g][trip.Arrival] = true
	case errors.Is(err, errs.Broken) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		if g != 0 {
			j.broken[g] = true
		}
	default:
		return err
	}
	if j.broken[g] && len(j.arrivals[g]) > 0 {
		return fmt.Errorf("some were told that generation %d has tripped, and some that it has broken", g)
	}
	return nil
}

func newJournal() *journal {
	return &journal{arrivals: map[int64]map[int]bool{}, broken: map[int64]bool{}}
}

// Every script loses a part of its replies and requests, and a part of the parties leave. All that
// know how their generation ended agree, and the arrivals of a generation that has tripped are those
// of all its parties.
func TestAgreement_LostReplies(t *testing.T) {
	const parties = 3
	lost := redistest.CountOfWork(t, 10_000) // of each script
	server := redistest.Server(t)
	proxy := redistest.Proxy(t, server.Addr())
	var mu sync.Mutex
	faults := map[string]int{} // by script
	least := func() int {
		mu.Lock()
		defer mu.Unlock()
		n := faults["enter"]
		for _, s := range []string{"look", "break", "release"} {
			n = min(n, faults[s])
		}
		return n
	}
	proxy.OnCommand(func(c redistest.Command) redistest.Fault {
		script := scriptOf(c)
		if script == "" || c.N%3 != 0 {
			return redistest.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		faults[script]++
		return []redistest.Fault{redistest.CloseAfterExec, redistest.CloseAfterExec, redistest.CloseAfterExec, redistest.DropBefore}[c.N%4]
	})
	j := newJournal()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	var all sync.WaitGroup
	for i := range 8 {
		e, name := enginetest.New(t, proxy.Client(t)), fmt.Sprint("b", i)
		for p := range parties {
			all.Go(func() {
				for round := 0; least() < lost && ctx.Err() == nil; round++ {
					bounded, leave := context.WithTimeout(ctx, patience(p, round))
					err := j.note(of(e, name, parties).Await(bounded))
					leave()
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	whole := 0
	for g, arrivals := range j.arrivals {
		if len(arrivals) == parties {
			whole++
		} else if j.unknown == 0 {
			t.Errorf("generation %d has tripped, and %d of %d were told", g, len(arrivals), parties)
		}
	}
	mu.Lock()
	defer mu.Unlock() // places are still being released
	t.Logf("%v faults; %d generations tripped, %d with all parties told, %d broken; %d parties did not know",
		faults, len(j.arrivals), whole, len(j.broken), j.unknown)
	if whole == 0 || len(j.broken) == 0 {
		t.Errorf("%d tripped, %d broken: want both", whole, len(j.broken))
	}
}

// patience is how long a party waits. One in three leaves soon.
func patience(party, round int) time.Duration {
	if (party+round)%3 == 0 {
		return time.Duration(1+rand.IntN(10)) * time.Millisecond
	}
	return 5 * time.Second
}

// scriptOf returns the name of the barrier's script that a command runs, or "".
func scriptOf(c redistest.Command) string {
	if len(c.Args) == 0 {
		return ""
	}
	return shas()[c.Args[0]]
}

// Processes are killed while their parties wait. The others are told, and those of a generation agree.
func TestAgreement_Killed(t *testing.T) {
	const processes = 3
	kills := redistest.Count(t, 50)
	server := redistest.Server(t)
	db := server.Client(t)
	env := map[string]string{"SERVER": server.Addr()}
	var members [processes]*redistest.ChildProc
	for i := range members {
		members[i] = redistest.Start(t, "party", env)
	}
	// A kill breaks nothing if it comes before its process has a party in the generation.
	hasBroken := func() bool {
		return slices.ContainsFunc(db.LRange(t.Context(), "told", 0, -1).Val(), func(line string) bool { return strings.HasPrefix(line, "broken") })
	}
	for n := 0; n < kills || n < 20*kills && !hasBroken(); n++ {
		before := db.LLen(t.Context(), "told").Val()
		for deadline := time.Now().Add(time.Minute); db.LLen(t.Context(), "told").Val() < before+4*processes; {
			if time.Now().After(deadline) {
				t.Fatal("nobody is told anything any more")
			}
			time.Sleep(5 * time.Millisecond)
		}
		// With two of three gone, those that are left are too few. What the dead have left breaks.
		survivor := rand.IntN(processes)
		for i := range members {
			if i != survivor {
				members[i].Kill()
			}
		}
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		for i := range members {
			if i != survivor {
				members[i] = redistest.Start(t, "party", env)
			}
		}
	}
	for i := range members {
		members[i].Kill()
	}
	j := newJournal()
	for _, line := range db.LRange(t.Context(), "told", 0, -1).Val() {
		var trip Trip
		var err error
		what := ""
		_, _ = fmt.Sscan(line, &what, &trip.Generation, &trip.Arrival)
		switch what {
		case "broken":
			err = errs.Broken
		case "unknown":
			err = errs.Unknown
		case "tripped":
		default:
			t.Fatal(line)
		}
		if err := j.note(trip, err); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d kills, %d generations tripped, %d broken", kills, len(j.arrivals), len(j.broken))
	if len(j.arrivals) == 0 || len(j.broken) == 0 {
		t.Error("want both")
	}
}

// runParty is a process with two parties of six, which say to Redis what each is told.
func runParty(c *redistest.ChildContext) {
	db := redis.NewClient(&redis.Options{Addr: os.Getenv("SERVER")})
	defer db.Close()
	e, err := enginetest.Open(db)
	if err != nil {
		return
	}
	defer e.Close()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for c.Err() == nil {
				trip, err := of(e, "b", 6, Lease(300*time.Millisecond)).Await(c)
				what := "tripped"
				switch {
				case errors.Is(err, errs.Broken):
					what = "broken"
				case errors.Is(err, errs.Unknown):
					what = "unknown"
				case err != nil:
					what = strings.ReplaceAll(err.Error(), " ", "_")
				}
				db.RPush(context.Background(), "told", fmt.Sprintf("%s %d %d", what, trip.Generation, trip.Arrival))
			}
		})
	}
	both.Wait()
}

// A barrier trips and breaks on one server, behind Sentinel and on a cluster, whatever the braces of
// its name.
func TestTopologies(t *testing.T) {
	for topology, open := range map[string]func(t *testing.T) (a, b redis.UniversalClient){
		"server": func(t *testing.T) (a, b redis.UniversalClient) {
			s := redistest.Server(t)
			return s.Client(t), s.Client(t)
		},
		"sentinel": func(t *testing.T) (a, b redis.UniversalClient) {
			s := redistest.Sentinel(t)
			return s.Client(t), s.Client(t)
		},
		"cluster": func(t *testing.T) (a, b redis.UniversalClient) {
			c := redistest.Cluster(t, 3, 0)
			return c.Client(t), c.Client(t)
		},
	} {
		t.Run(topology, func(t *testing.T) {
			one, other := open(t)
			a, b := enginetest.New(t, one), enginetest.New(t, other)
			for _, name := range []string{"orders", "{user7}:cart", "a}b", "a{", "x{}{t}"} {
				conforms(t, of(a, name, 10), of(b, name, 10))
			}
		})
	}
}

// conforms has two processes with five parties each trip a barrier three times, and break it.
func conforms(t *testing.T, a, b *Barrier) {
	t.Helper()
	j := newJournal()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for range 3 {
				if err := j.note([]*Barrier{a, b}[i%2].Await(ctx)); err != nil {
					t.Errorf("%q: %v", a.Name(), err)
				}
			}
		})
	}
	all.Wait()
	if len(j.arrivals) != 3 || j.unknown != 0 {
		t.Errorf("%q: %d generations, %d did not know", a.Name(), len(j.arrivals), j.unknown)
	}
	waiting := make(chan error)
	go func() {
		_, err := a.Await(ctx)
		waiting <- err
	}()
	for {
		s, err := b.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if s.Arrived == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if broke, err := b.Reset(ctx); !broke || err != nil {
		t.Errorf("%q: %v, %v", a.Name(), broke, err)
	}
	if err := <-waiting; !errors.Is(err, errs.Broken) {
		t.Errorf("%q: %v", a.Name(), err)
	}
}

// Whoever may not use the keys is told at once.
func TestDenied(t *testing.T) {
	server := redistest.Server(t)
	rdb := server.Client(t)
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "u", "on", ">p", "~other", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	b := of(enginetest.New(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" })), "b", 2)
	_, awaited := b.Await(t.Context())
	_, reset := b.Reset(t.Context())
	_, state := b.State(t.Context())
	for i, err := range []error{awaited, reset, state} {
		if !errors.Is(err, errs.Denied) || errors.Is(err, errs.Unknown) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// shas returns the names of the scripts by what a sending carries: the digest, or the source.
var shas = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for name, s := range map[string]string{
		"enter": enterScript.Source(), "look": lookScript.Source(), "break": breakScript.Source(), "release": releaseScript.Source(),
	} {
		sum := sha1.Sum([]byte(s))
		names[hex.EncodeToString(sum[:])], names[s] = name, name
	}
	return names
})
