// A look: how a caller that is alone awaits its answer without going to sleep.

package dial

import (
	"net"
	"runtime"
	"syscall"
	"time"
)

const (
	// lookFor is how long a caller looks for its answer before it goes to sleep. Of 50, 75 and 100 µs
	// this made pairs fastest, for the least CPU time: see decision 0060.
	lookFor = 75 * time.Microsecond
	// mostReads bounds how often it reads meanwhile, where time stands still, as in a bubble of
	// testing/synctest. It is more than a processor does in lookFor.
	mostReads = 1 << 12
	// mostUnlooked bounds for how many answers no look is tried, after looks in vain.
	mostUnlooked = 1 << 10
)

// Looker reads what comes on a connection without waiting for it asleep. Only the wire's user calls it.
//
// A server on the same machine answers a script within 20 µs, if it is awake. But a caller that
// sleeps meanwhile lets the processor sleep too, and to wake that takes longer than the script. A
// server that is further away does not answer in time. So after each look in vain, twice as many
// answers are awaited asleep before the next look.
type Looker struct {
	raw  syscall.RawConn           // nil: it never looks
	each func(socket uintptr) bool // look, bound once: it would be an allocation for each answer; nil: Read never looks
	into []byte                    // where the answer goes
	n    int                       // how many bytes of it have come
	vain int                       // how many looks in a row have been in vain
	rest int                       // how many answers are awaited asleep before the next look
}

// Watch makes the connection the one to look at. It takes a plain socket of package net only: the
// Read of any other connection, such as TLS's or one of the program's own, does more than to read.
// With one processor, a long look would keep the processor from those that are to answer.
func (l *Looker) Watch(conn net.Conn) {
	if !canLook {
		return
	}
	switch c := conn.(type) {
	case *net.TCPConn:
		l.raw, _ = c.SyscallConn()
	case *net.UnixConn:
		l.raw, _ = c.SyscallConn()
	}
	if runtime.GOMAXPROCS(0) > 1 {
		l.each = l.look
	}
}

// CanPeek reports whether Peek can read.
func (l *Looker) CanPeek() bool { return l.raw != nil }

// Peek reads what has come, and does not wait. ok is false if the connection has failed, or its read deadline has
// passed: then reading as usual returns the error. It must only be called if CanPeek.
func (l *Looker) Peek(b []byte) (n int, ok bool) {
	ended := false
	err := l.raw.Read(func(socket uintptr) bool {
		var err error
		n, err = readNow(socket, b)
		ended = n == 0 && err == nil
		return true
	})
	return max(n, 0), err == nil && !ended
}

// Read reads what comes within lookFor. It returns 0 if nothing does, if it does not look, or if
// the connection has failed: then reading as usual returns the error.
func (l *Looker) Read(b []byte) int {
	if l.raw == nil || l.each == nil {
		return 0
	}
	if l.rest > 0 {
		l.rest--
		return 0
	}
	l.into, l.n = b, 0
	_ = l.raw.Read(l.each)
	l.into = nil
	if l.n > 0 {
		l.vain = 0
		return l.n
	}
	l.vain++
	l.rest = min(1<<min(l.vain, 30), mostUnlooked)
	return 0
}

// look reads until something has come or the time is over. It always returns true: the caller is
// to go to sleep with its deadline, which read does not know.
func (l *Looker) look(socket uintptr) bool {
	begun := time.Now()
	for range mostReads {
		n, err := readNow(socket, l.into)
		if n > 0 {
			l.n = n
		}
		if n >= 0 && err == nil || time.Since(begun) >= lookFor {
			break
		}
	}
	return true
}
