// The programs run side by side, as the replicas of a service do that changes over.

package programs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/docs/from/programs/internal/etcdtest"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// builds is where the programs are built.
var builds string

// withBuilds makes the folder for the programs, and removes it after the tests.
type withBuilds struct{ m *testing.M }

func (w withBuilds) Run() int {
	dir, err := os.MkdirTemp("", "holdfast-from-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	builds = dir
	return w.m.Run()
}

func TestMain(m *testing.M) { redistest.Main(withBuilds{m}) }

// patience is how long programs may take. It runs out only on a defect.
const patience = 2 * time.Minute

// sells is how many bolts each program sells.
const sells = 20

// a server that the programs reach, and a client of it.
type server struct {
	addr string
	rdb  *redis.Client
}

// eachServer runs a test with an embedded server and with a real one.
func eachServer(t *testing.T, test func(t *testing.T, s server)) {
	t.Run("embedded", func(t *testing.T) {
		s := holdfasttest.New(t)
		test(t, server{s.Addr(), s.Redis()})
	})
	t.Run("real", func(t *testing.T) { test(t, realServer(t)) })
}

func realServer(t *testing.T) server {
	s := redistest.Server(t)
	return server{s.Addr(), s.Client(t)}
}

// command returns how to run a program: by its folder, or by the class if it is Java's.
type command func(t *testing.T) []string

// built builds a program of this module once.
func built(program string) command {
	return func(t *testing.T) []string {
		t.Helper()
		binary := filepath.Join(builds, strings.ReplaceAll(program, "/", "-"))
		if _, err := os.Stat(binary); err == nil {
			return []string{binary}
		}
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./"+program).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", program, err, out)
		}
		return []string{binary}
	}
}

// together runs programs at the same time, each with the same arguments, until all have ended.
func together(t *testing.T, programs []command, args ...string) {
	t.Helper()
	ctx := redistest.Within(t, patience)
	var all sync.WaitGroup
	for _, program := range programs {
		line := append(program(t), args...)
		all.Go(func() {
			if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", line, err, out)
			}
		})
	}
	all.Wait()
}

// missing has programs sell bolts at the same time, and returns how many bolts were sold without leaving
// the stock: none, if no two programs ever sold at once.
func missing(t *testing.T, rdb *redis.Client, programs []command, args ...string) int {
	t.Helper()
	const stock = 1000
	ctx := context.Background()
	redistest.Must(t, rdb.Set(ctx, "stock:bolt", stock, 0).Err())
	together(t, programs, args...)
	left, err := rdb.Get(ctx, "stock:bolt").Int()
	redistest.Must(t, err)
	return left - (stock - sells*len(programs))
}

// sellTogether has programs that exclude each other sell bolts at the same time.
func sellTogether(t *testing.T, rdb *redis.Client, programs []command, args ...string) {
	t.Helper()
	if n := missing(t, rdb, programs, args...); n != 0 {
		t.Errorf("%d bolts are in stock that were sold", n)
	}
}

// phases are the steps of a change: what runs side by side in each.
func phases(library string) map[string][]command {
	before, both, after := built(library+"/before"), built(library+"/both"), built(library+"/after")
	return map[string][]command{
		"before":          {before, before, before},
		"before and both": {before, both, before, both},
		"both and after":  {both, after, both, after},
		"after":           {after, after, after},
	}
}

func TestRun_Redsync(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) { sellInPhases(t, s, phases("redsync"), s.addr) })
}

func TestRun_Redislock(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) { sellInPhases(t, s, phases("redislock"), s.addr) })
}

// Rueidislock needs client-side caching, which the embedded server does not have.
func TestRun_Rueidislock(t *testing.T) {
	s := realServer(t)
	sellInPhases(t, s, phases("rueidislock"), s.addr)
}

func TestRun_Etcd(t *testing.T) {
	redistest.LongRun(t)
	s := realServer(t)
	sellInPhases(t, s, phases("etcd"), s.addr, etcdtest.Start(t))
}

func sellInPhases(t *testing.T, s server, phases map[string][]command, args ...string) {
	for phase, programs := range phases {
		t.Run(phase, func(t *testing.T) { sellTogether(t, s.rdb, programs, args...) })
	}
}

// A program in Go and one in Java share one lock.
func TestRun_Redisson(t *testing.T) {
	redistest.LongRun(t)
	s := realServer(t)
	after, java := built("redisson/after"), inJava("from.Sell")
	sellTogether(t, s.rdb, []command{java, after, java, after}, s.addr)
}

// The report is written once, whoever comes first, and not again within lockAtLeastFor.
func TestRun_ShedLock(t *testing.T) {
	redistest.LongRun(t)
	both, after := built("shedlock/both"), built("shedlock/after")
	eachServer(t, func(t *testing.T, s server) {
		reportTogether(t, s, both, both, both)
		reportTogether(t, s, both, after, both, after)
		reportTogether(t, s, after, after, after)
	})
	t.Run("beside Java", func(t *testing.T) {
		s := realServer(t)
		java := inJava("from.Report")
		reportTogether(t, s, java, java)
		reportTogether(t, s, java, both, java, both)
	})
}

// reportTogether has programs write the report at the same time.
func reportTogether(t *testing.T, s server, programs ...command) {
	t.Helper()
	ctx := context.Background()
	redistest.Must(t, s.rdb.FlushDB(ctx).Err())
	together(t, programs, s.addr)
	if n, err := s.rdb.Get(ctx, "reports").Int(); err != nil || n != 1 {
		t.Errorf("written %d times by %d, %v", n, len(programs), err)
	}
}

// Old alone beside new alone do not exclude each other: that is why there is a time between. It also shows
// that the count of the bolts notices it.
func TestRun_OldAloneBesideNewAlone(t *testing.T) {
	before, after := built("redsync/before"), built("redsync/after")
	eachServer(t, func(t *testing.T, s server) {
		for range 30 {
			if missing(t, s.rdb, []command{before, after, before, after}, s.addr) > 0 {
				return
			}
		}
		t.Error("no two sold at once")
	})
}

// buildJava builds the programs in java/ once. The first build on a machine downloads their libraries,
// which takes a minute or so.
var buildJava = sync.OnceValues(func() ([]byte, error) {
	mvn := exec.Command("mvn", "-q", "-B", "process-classes")
	mvn.Dir = "java"
	return mvn.CombinedOutput()
})

// inJava returns how to run a class of java/.
func inJava(class string) command {
	return func(t *testing.T) []string {
		t.Helper()
		for _, tool := range []string{"java", "mvn"} {
			if _, err := exec.LookPath(tool); err != nil {
				redistest.Missing(t, tool+" is not installed")
			}
		}
		if out, err := buildJava(); err != nil {
			t.Fatalf("mvn: %v\n%s", err, out)
		}
		return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "java/target/classes:java/target/lib/*", class}
	}
}
