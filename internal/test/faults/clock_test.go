// Clocks run at different rates, and still a lease ends here before it ends in Redis.

package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// clockRate is the source of a library that is preloaded into a server, so that the server's clock
// runs at another rate. Preloaded into this process the library would be no use: Go asks the kernel
// for the time, not libc. It makes no difference which of the two clocks runs faster.
const clockRate = "testdata/clockrate.c"

// serverAtRate starts a server whose clock runs at rate times the rate of this process's clock, and
// checks that rate.
func serverAtRate(t *testing.T, rate float64) *redistest.Proc {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS != "linux" {
		redistest.Missing(t, "no gcc on Linux to build "+clockRate)
	}
	library := filepath.Join(t.TempDir(), "clockrate.so")
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-o", library, clockRate).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", library)
	t.Setenv("CLOCK_RATE", fmt.Sprint(rate))
	s := redistest.Server(t)
	for _, name := range []string{"LD_PRELOAD", "CLOCK_RATE"} {
		if err := os.Unsetenv(name); err != nil { // for this server alone
			t.Fatal(err)
		}
	}
	const span = time.Second
	began, at := serverTime(t, s)
	time.Sleep(span)
	ended, then := serverTime(t, s)
	if got := then.Sub(at).Seconds() / ended.Sub(began).Seconds(); math.Abs(got-rate) > 0.004 {
		t.Fatalf("the server's clock runs at %.4f times the rate, want %v", got, rate)
	}
	return s
}

// serverTime asks for the server's clock 20 times. It returns the answer that came soonest: what
// the clock showed, and when that request was sent.
func serverTime(t *testing.T, s *redistest.Proc) (asked, shown time.Time) {
	t.Helper()
	soonest := time.Hour
	for range 20 {
		before := time.Now()
		showed, err := s.Admin().Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took < soonest {
			soonest, asked, shown = took, before, showed
		}
	}
	return asked, shown
}

// endOf returns the earliest and the latest instant at which the server ends the key's life. The
// server's clock runs at the given rate. A round trip lies between the two instants.
func endOf(t *testing.T, s *redistest.Proc, key string, rate float64) (earliest, latest time.Time) {
	t.Helper()
	asked := time.Now()
	var now *redis.TimeCmd
	var left *redis.DurationCmd
	_, err := s.Admin().TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		now, left = p.Time(t.Context()), p.PExpireTime(t.Context(), key)
		return nil
	})
	if err != nil || left.Val() <= 0 {
		t.Fatalf("PEXPIRETIME of %s = %v, %v", key, left.Val(), err)
	}
	took := time.Since(asked)
	end := time.UnixMilli(left.Val().Milliseconds())
	earliest = asked.Add(time.Duration(float64(end.Sub(now.Val())) / rate))
	return earliest, earliest.Add(took)
}

func TestClocksOfDifferentRates(t *testing.T) {
	redistest.Needs(t)
	const length = 2 * time.Second
	for _, rate := range []float64{1.01, 0.99} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			s := serverAtRate(t, rate)
			clienttest.LeaveNothing(t, s.Admin())
			account := starvation{redistest.FeelPulse(t), watchThreads(t)}
			var ahead clienttest.Spread
			doubtful := 0
			for range redistest.Count(t, 10) {
				doubtful += loseAll(t, s, account, rate, length, &ahead)
			}
			// Starvation excuses holders that are told late. It does not make most of them late.
			// Without the margin all of them are late, however far the machine stretches the bound.
			if n := len(ahead.All); doubtful > n/2 {
				t.Errorf("%d of %d were told after Redis's expiry, each for want of the processor", doubtful, n)
			}
			clienttest.Figure(t, "server's clock at %v times the rate, %d leases of %v, with a margin of %v: told ahead of Redis's expiry, least %v, median %v; %d late for want of the processor",
				rate, len(ahead.All), length, length/100+5*time.Millisecond, ahead.At(0), ahead.At(50), doubtful)
		})
	}
}

// loseAll takes fifty locks and lets all of them run out. Half of them are renewed until the
// network is gone. loseAll returns how many holders were told late by no more than the time for
// which the process was starved.
func loseAll(t *testing.T, s *redistest.Proc, account starvation, rate float64, length time.Duration, ahead *clienttest.Spread) (doubtful int) {
	t.Helper()
	proxy := redistest.Proxy(t, s.Addr())
	client := holdfast.New(proxy.Client(t))
	defer client.Close()
	contexts := make(map[string]context.Context)
	for i := range 50 {
		name, option := fmt.Sprint("renewed", i), holdfast.Renewed(length)
		if i%2 == 1 {
			name, option = fmt.Sprint("fixed", i), holdfast.Fixed(length)
		}
		l := clienttest.Grab(t, client.Mutex(name, option))
		contexts[name] = l.Context(t.Context())
		time.Sleep(length / 100) // each in another phase between two renewals
	}
	proxy.Refuse(true)
	proxy.Cut()
	time.Sleep(10 * time.Millisecond) // requests that were on their way have arrived
	type loss struct {
		name string
		at   time.Time
	}
	losses := make(chan loss, len(contexts))
	ends, latest := make(map[string]time.Time), make(map[string]time.Time)
	for name, ctx := range contexts {
		ends[name], latest[name] = endOf(t, s, name, rate)
		context.AfterFunc(ctx, func() { losses <- loss{name, time.Now()} })
	}
	told := make([]loss, 0, len(contexts))
	for range contexts {
		told = append(told, <-losses)
	}
	time.Sleep(2 * threadsBeat) // the last samples of the account
	for _, lost := range told {
		if cause := context.Cause(contexts[lost.name]); !errors.Is(cause, holdfast.ErrLost) {
			t.Errorf("%s: the cause is %v, want ErrLost", lost.name, cause)
		}
		early := ends[lost.name].Sub(lost.at)
		ahead.Add(early)
		if early >= 0 {
			continue
		}
		late, starved := lost.at.Sub(latest[lost.name]), account.between(ends[lost.name].Add(-length/100), lost.at)
		if late <= starved {
			doubtful++
		} else {
			t.Errorf("%s: told %v after Redis's expiry, and the process was starved for no more than %v", lost.name, late, starved)
		}
	}
	for name, end := range latest {
		time.Sleep(time.Until(end.Add(20 * time.Millisecond)))
		if n, err := s.Admin().Exists(t.Context(), name).Result(); n != 0 || err != nil {
			t.Errorf("%s is there after its end (%v)", name, err)
		}
	}
	return doubtful
}
