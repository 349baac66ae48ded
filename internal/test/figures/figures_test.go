package figures

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m, redistest.Child("starved", runStarved)) }

// Each figure is what docs/reports/found.md says it has to be, on a machine that does nothing else.
func TestFigures(t *testing.T) {
	redistest.RealTime(t)
	if os.Getenv("HOLDFAST_LONG") == "" {
		t.Skip("belongs to the long run")
	}
	t.Run("slow", slowServers)
	t.Run("starved", starvedProcesses)
	t.Run("impatient", impatientWaiters)
	t.Run("news", badNews)
	t.Run("failover", plannedFailover)
	t.Run("quorum", turnsOfAQuorum)
}

// verdict logs a figure beside what it has to be, in the form that bench/cmd/ugly reads.
func verdict(t *testing.T, what, goal string, met bool, format string, args ...any) {
	t.Helper()
	said := "met"
	if !met {
		said = "not met"
		t.Errorf("%s: %s, and it has to be: %s", what, fmt.Sprintf(format, args...), goal)
	}
	t.Logf("figure: %s | %s | %s | %s", what, goal, fmt.Sprintf(format, args...), said)
}

// Many wait in one process, 20 ms away.
func badNews(t *testing.T) {
	const away = 20 * time.Millisecond
	all := BadNews()
	for _, what := range slices.Sorted(maps.Keys(all)) {
		news := all[what]
		s := redistest.Server(t)
		net := redistest.Proxy(t, s.Addr(), redistest.Lagging(away/2, 0))
		near, far := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, net.Client(t))
		redistest.Must(t, news.Prepare(t.Context(), near))
		know := make(chan time.Time, Waiters)
		for range Waiters {
			go func() {
				_ = news.Wait(t.Context(), far)
				know <- time.Now()
			}()
		}
		time.Sleep(4 * time.Second) // all wait by then
		scripts, began := net.Count("EVALSHA"), time.Now()
		redistest.Must(t, news.Tell(t.Context(), near))
		var last time.Duration
		for range Waiters {
			last = max(last, (<-know).Sub(began))
		}
		scripts = net.Count("EVALSHA") - scripts
		verdict(t, fmt.Sprintf("%d waiters, %v away, %s", Waiters, away, what), "100 ms and 5 scripts at most",
			last <= 100*time.Millisecond && scripts <= 5, "%v, %d scripts", last.Round(time.Millisecond), scripts)
	}
}

func turnsOfAQuorum(t *testing.T) {
	const processes, work = 10, 30 * time.Millisecond
	var servers []*redistest.Proc
	for range 5 {
		servers = append(servers, redistest.Server(t))
	}
	var quorums []*holdfast.Quorum
	for range processes {
		var clients []*holdfast.Client
		for _, s := range servers {
			clients = append(clients, clienttest.OpenClient(t, s.Client(t)))
		}
		quorums = append(quorums, holdfast.NewQuorum("orders", clients))
	}
	time.Sleep(5 * time.Second) // for as long a server that is new may count as one without its data
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	grants, longest := Turns(ctx, quorums, work)
	sum, least, wait := 0, grants[0], time.Duration(0)
	for i, n := range grants {
		sum, least, wait = sum+n, min(least, n), max(wait, longest[i])
	}
	verdict(t, "a Quorum of five, 10 processes, 30 ms of work: the longest wait", "2 s at most",
		wait <= 2*time.Second, "%v", wait.Round(time.Millisecond))
	verdict(t, "the same: grants of the process that has least", "half of its share at least",
		2*least*processes >= sum, "%d of %d", least, sum)
}
