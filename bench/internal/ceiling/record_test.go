package ceiling

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestACommandIsSentAsItWasHeard(t *testing.T) {
	sent := command{"evalsha", "abc", "2", "lock:a", "token:{lock:a}", "1000", "", "lock:a\r\n"}
	heard, err := parse(slices.Concat(sent.appendTo(nil), command{"PING"}.appendTo(nil)))
	if err != nil || len(heard) != 2 || !slices.Equal(heard[0], sent) {
		t.Fatalf("parse: %q, %v", heard, err)
	}
	other, err := heard[0].on("lock:a", "lock:bb")
	want := command{"evalsha", "abc", "2", "lock:bb", "token:{lock:bb}", "3600001000", "", "lock:bb\r\n"}
	if err != nil || !slices.Equal(other, want) {
		t.Errorf("on another lock: %q, %v; want %q", other, err, want)
	}
	if _, err := heard[1].on("a", "b"); err == nil {
		t.Error("PING went for a script")
	}
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	for _, written := range []string{"PING\r\n", "*2\r\n$4\r\nPING\r\n", "*x\r\n", "*1\r\n:1\r\n"} {
		if got, err := parse([]byte(written)); err == nil {
			t.Errorf("parse(%q) = %q", written, got)
		}
	}
}

func TestThePairsOfTheCeilingAreGranted(t *testing.T) {
	redistest.Needs(t)
	server, err := measure.StartServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	const locks = 10
	pipelines, err := Open(t.Context(), server.Addr, "bench", locks)
	if err != nil {
		t.Fatal(err)
	}
	defer pipelines.Close()
	for range 3 {
		pairs := int64(0)
		for i := range pipelines.Len() {
			n, err := pipelines.Pairs(i)
			if err != nil {
				t.Fatal(err)
			}
			pairs += n
		}
		if pairs != locks {
			t.Errorf("%d pairs on %d locks", pairs, locks)
		}
	}
}
