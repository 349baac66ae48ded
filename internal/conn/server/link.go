// A link: the connection as go-redis sees it. It begins to watch a caller's context only when the
// answer is late.

package server

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
)

const (
	// late is how long an answer may take before the link begins to watch the caller's context, and to
	// read in turns. It is also the longest delay with which a caller returns whose context ends before that.
	late = 5 * time.Millisecond
	// glance is how long a read looks once more after its deadline: the reply may have come while
	// this process itself had no processor.
	glance = time.Millisecond
	// shortNap and longNap bound the naps of a reader that does not await the network. Each is half as long again as
	// the one before, so what was answered after t is heard by 1.5 t + 4 ms. Together they take 128 ms. Whatever was
	// not answered by then is awaited as usual: the server is slow, not this process.
	shortNap, longNap = 4 * time.Millisecond, 64 * time.Millisecond
	// staysLate is how many answers must be heard in time until a connection for renewals expects that of the next.
	staysLate = 16
	// fitting is how many bytes a socket accepts without waiting for the other end, if
	// everything that was written before has been answered.
	fitting = 4 << 10
)

// link is a connection as go-redis sees it. Only the wire's user reads and writes.
//
// Arranging that the end of a context cuts the connection takes as many allocations as
// everything else that is done for a request, and nearly every request is answered before it
// could matter. So the first read gives up soon, arranges it from then on, and reads
// again.
//
// A late answer is read in turns, each twice as long as the one before. In a busy process a goroutine
// that awaits the network is woken behind all that are ready to run: with forty of them that takes
// 400 ms for each reply, or 1.5 s. One that awaits a timer is woken before them, and finds the reply,
// unless the network has woken it, behind them, before its timer. So the reply to a renewal, for which a lease waits,
// is not awaited in the network at first: its reader takes naps, and looks, where the socket allows that.
type link struct {
	net.Conn
	w      *wire
	kernel bool      // writes go to a buffer of the kernel
	limit  time.Time // until when the answer may come
	naps   bool      // its reader takes naps
	looker dial.Looker
}

// socket is a link that lets go-redis look at the raw connection, to see whether it was closed.
type socket struct {
	*link
	syscall.Conn
}

func (w *wire) link(conn net.Conn) net.Conn {
	l := &link{Conn: dial.Greet(conn), w: w}
	l.looker.Watch(conn)
	if raw, ok := conn.(syscall.Conn); ok {
		l.kernel = true
		return socket{l, raw}
	}
	_, l.kernel = dial.Underneath(conn).(syscall.Conn)
	return l
}

// SetReadDeadline is called by go-redis before it reads the answers to a pipeline, with a time that
// follows from the program's ReadTimeout. A server has less, its patience, unless it was seen to need
// more. The reply to a renewal is waited for as long as it is of use, since another renewal is sent
// beside one that takes long.
func (l *link) SetReadDeadline(t time.Time) error {
	now := time.Now()
	if l.w.patience = l.w.node.gate.pace.patience(); !l.w.listens.IsZero() {
		t = l.w.listens
	} else if end := now.Add(l.w.patience); t.IsZero() || end.Before(t) {
		t = end
	}
	l.limit = t
	hurry := l.w.urgent || l.w.lates > 0
	l.naps = hurry && (l.w.urgent || l.w.watchful) && l.looker.CanPeek()
	if early := now.Add(late); early.Before(t) && !l.naps && (l.w.caller != nil || hurry) {
		t = early
	}
	return l.Conn.SetReadDeadline(t)
}

// SetWriteDeadline gives the server as long for taking what is written.
func (l *link) SetWriteDeadline(t time.Time) error {
	if end := time.Now().Add(l.w.node.gate.pace.patience()); t.IsZero() || end.Before(t) {
		t = end
	}
	return l.Conn.SetWriteDeadline(t)
}

func (l *link) Read(b []byte) (int, error) {
	if n, err := l.look(b); n > 0 || err != nil {
		return n, err
	}
	for turn := late; ; turn *= 2 {
		n, err := l.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		l.w.watch()
		now := time.Now()
		if !now.Before(l.limit) {
			if n, _ := l.readUntil(now.Add(glance), b); n > 0 {
				return n, nil
			}
			return 0, err
		}
		next := earlier(now.Add(turn), l.limit)
		if err := l.Conn.SetReadDeadline(next); err != nil {
			return 0, err
		}
	}
}

// look reads without awaiting the network: for a moment if its caller is alone, and between naps. It returns 0 if the
// answer is to be read as usual.
func (l *link) look(b []byte) (int, error) {
	if l.w.alone {
		if n := l.looker.Read(b); n > 0 {
			return n, nil
		}
	}
	if l.naps {
		return l.nap(b)
	}
	return 0, nil
}

// nap looks for the answer between naps. It returns 0 if none has come, or if reading as usual is to tell what has
// become of the connection, which it may do for a first turn.
func (l *link) nap(b []byte) (int, error) {
	for nap := shortNap; ; nap += nap / 2 {
		n, ok := l.looker.Peek(b)
		if n > 0 {
			return n, nil
		}
		if now := time.Now(); !ok || nap > longNap || l.limit.Before(now.Add(nap)) {
			return 0, l.Conn.SetReadDeadline(earlier(now.Add(late), l.limit))
		}
		time.Sleep(nap)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (l *link) readUntil(t time.Time, b []byte) (int, error) {
	if err := l.Conn.SetReadDeadline(t); err != nil {
		return 0, err
	}
	return l.Conn.Read(b)
}

// Write first arranges that the caller's end cuts the connection, if writing may have to wait.
// It cannot give up and try again as Read does: not every connection (TLS) allows a second try
// after a part was written.
func (l *link) Write(b []byte) (int, error) {
	if !l.kernel || len(b) > fitting {
		l.w.watch()
	}
	return l.Conn.Write(b)
}
