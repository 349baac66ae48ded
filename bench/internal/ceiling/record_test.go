package ceiling

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestACallIsMovedToOtherLocksAndALaterTime(t *testing.T) {
	micros := func(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) }
	notAfter, later, token := micros(noon.Add(time.Second)), micros(noon.Add(time.Second+time.Hour)), micros(noon.Add(-time.Second))
	millis := strconv.FormatInt(noon.Add(time.Minute).UnixMilli(), 10)
	c := command{[]string{"evalsha", notAfter, "2", "x:r:1", "{x:r:1}", notAfter, token, "30000", "", "x:r:1 " + notAfter, millis}, noon}
	want := []string{"evalsha", notAfter, "2", "x:a:1", "{x:a:1}", later, token, "30000", "", "x:a:1 " + later,
		strconv.FormatInt(noon.Add(time.Hour+time.Minute).UnixMilli(), 10)}
	if got := c.on("x:r:", "x:a:").words; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCommandsAreHeardHoweverTheyAreWritten writes two commands to a tape, cut at each place.
func TestCommandsAreHeardHoweverTheyAreWritten(t *testing.T) {
	first, second := command{words: []string{"EVALSHA", "ab", "0", "a\r\nb"}}, command{words: []string{"evalsha", "ab", "0", ""}}
	text := second.appendTo(command{words: []string{"PING"}}.appendTo(first.appendTo(nil)))
	for cut := range text {
		heard := new(tape)
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		conn := &taped{Conn: near, tape: heard}
		for _, part := range [][]byte{text[:cut], text[cut:]} {
			redistest.Must(t, redistest.Err(conn.Write(part)))
		}
		near.Close()
		got, err := heard.scripts()
		if err != nil || len(got) != 2 || !slices.Equal(got[0].words, first.words) || !slices.Equal(got[1].words, second.words) {
			t.Fatalf("cut at %d: %v, %v", cut, got, err)
		}
	}
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	for _, written := range []string{"PING\r\n", "*x\r\n", "*1\r\n:1\r\n"} {
		if words, length, err := parse([]byte(written)); err == nil {
			t.Errorf("parse(%q) = %q, %d", written, words, length)
		}
	}
}

func server(t *testing.T) *measure.Server {
	t.Helper()
	redistest.Needs(t)
	server, err := measure.StartServer(t.Context())
	redistest.Must(t, err)
	t.Cleanup(server.Stop)
	return server
}

func TestThePairsOfTheCeilingAreGranted(t *testing.T) {
	for callers, want := range map[int]int64{1: alone, Callers: Callers * turns} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			pipelines, err := Open(t.Context(), server(t).Addr, "bench", callers)
			redistest.Must(t, err)
			defer pipelines.Close()
			for i := range pipelines.Len() {
				for range 3 {
					pairs := int64(0)
					for range pipelines.all[i].chunks {
						n, err := pipelines.Pairs(i)
						redistest.Must(t, err)
						pairs += n
					}
					if pairs != want {
						t.Fatalf("%d pairs, want %d", pairs, want)
					}
				}
				redistest.Must(t, redistest.Err(pipelines.Pairs(i))) // a round that Check ends
			}
			redistest.Check(t, pipelines.Check(t.Context()))
		})
	}
}

// TestPairsThatAreNotGrantedAreNoCeiling takes one of the locks away from the pipelines.
func TestPairsThatAreNotGrantedAreNoCeiling(t *testing.T) {
	server := server(t)
	pipelines, err := Open(t.Context(), server.Addr, "bench", 1)
	redistest.Must(t, err)
	defer pipelines.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	redistest.Must(t, rdb.HSet(context.Background(), "bench:a:0001", "somebody", 1).Err())
	redistest.Must(t, redistest.Err(pipelines.Pairs(0)))
	redistest.Is(t, "a lock that another has", pipelines.Check(t.Context()), errOtherwise)
}

func TestAnErrorIsNoAnswer(t *testing.T) {
	for reply, good := range map[string]bool{"*2\r\n:1\r\n$3\r\na\r\n\r\n": true, "$-1\r\n": true, "-ERR\r\n": false,
		"*2\r\n:1\r\n-ERR no\r\n": false, "*x\r\n": false, "*2\r\n:1\r\n": false} {
		if err := Answered(newReplies(strings.NewReader(reply))); (err == nil) != good {
			t.Errorf("%q: %v", reply, err)
		}
	}
}
