//go:build unix

// A link awaits the network for callers. For a lease it looks.

package server

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// awaited counts the reads that wait for the network.
type awaited struct {
	net.Conn
	reads int
}

func (a *awaited) Read(b []byte) (int, error) {
	a.reads++
	return a.Conn.Read(b)
}

// In a busy process the network wakes a goroutine behind all that are ready to run. So the answer to a renewal is
// looked for: on a connection of callers, and on one of renewals while answers are late.
func TestTheAnswerToARenewalIsNotAwaitedInTheNetwork(t *testing.T) {
	n := New("", new(redis.Options), nil, nil)
	for what, tc := range map[string]struct {
		urgent, watchful bool
		lates, reads     int
	}{
		"a renewal beside callers":     {urgent: true},
		"renewals, answers are late":   {watchful: true, lates: 3},
		"renewals, answers in time":    {watchful: true, reads: 1},
		"a caller, answers are late":   {lates: 3, reads: 1},
		"callers, renewals among them": {urgent: true, lates: 3},
	} {
		t.Run(what, func(t *testing.T) {
			here, there := loopback(t)
			w := &wire{node: n, urgent: tc.urgent, lates: tc.lates, watched: watched{watchful: tc.watchful, listens: time.Now().Add(time.Minute)}}
			conn := &awaited{Conn: here}
			l := &link{Conn: conn, w: w}
			l.looker.Watch(here)
			redistest.Must(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
			time.AfterFunc(2*time.Millisecond, func() { _, _ = io.WriteString(there, "+OK\r\n") })
			b := make([]byte, 64)
			if n, err := l.Read(b); err != nil || string(b[:n]) != "+OK\r\n" {
				t.Fatalf("read %q, %v", b[:n], err)
			}
			if conn.reads > 0 != (tc.reads > 0) {
				t.Errorf("it awaited the network %d times, want %d", conn.reads, tc.reads)
			}
		})
	}
}

// What does not come during the naps, and the end of a connection, are read as usual.
func TestNapsEnd(t *testing.T) {
	here, there := loopback(t)
	conn := &awaited{Conn: here}
	w := &wire{node: New("", new(redis.Options), nil, nil), urgent: true, watched: watched{listens: time.Now().Add(time.Minute)}}
	l := &link{Conn: conn, w: w}
	l.looker.Watch(here)
	_ = l.SetReadDeadline(time.Now().Add(time.Minute))
	time.AfterFunc(4*longNap, func() { _, _ = io.WriteString(there, "+OK\r\n") })
	b := make([]byte, 64)
	if n, err := l.Read(b); err != nil || string(b[:n]) != "+OK\r\n" || conn.reads < 2 {
		t.Errorf("read %q, %v, in %d turns", b[:n], err, conn.reads)
	}
	_ = l.SetReadDeadline(time.Now().Add(time.Minute))
	there.Close()
	if n, err := l.Read(b); n > 0 || err == nil {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
}

// In a busy process every second answer or so is heard in time. That says nothing about the next.
func TestSomeAnswersInTimeDoNotMakeAConnectionPrompt(t *testing.T) {
	w := new(wire)
	w.took(late)
	for range staysLate - 1 {
		w.took(0)
	}
	if w.lates == 0 {
		t.Errorf("prompt after %d answers in time", staysLate-1)
	}
	if w.took(0); w.lates != 0 {
		t.Errorf("not prompt after %d answers in time", staysLate)
	}
	if w.took(0); w.lates != 0 {
		t.Errorf("expects %d late answers", w.lates)
	}
}

// loopback returns both ends of a connection.
func loopback(t *testing.T) (here, there net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	redistest.Must(t, err)
	defer listener.Close()
	here, err = net.Dial("tcp", listener.Addr().String())
	redistest.Must(t, err)
	t.Cleanup(func() { here.Close() })
	there, err = listener.Accept()
	redistest.Must(t, err)
	t.Cleanup(func() { there.Close() })
	return here, there
}
