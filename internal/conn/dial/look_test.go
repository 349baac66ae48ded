//go:build unix

// A look finds what has come, is rarely in vain, and changes nothing else.

package dial

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// lookedAt returns a looker at one end of a loopback connection, and both ends.
func lookedAt(t *testing.T) (*Looker, net.Conn, net.Conn) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	here, there := loopback(t)
	l := new(Looker)
	l.Watch(here)
	return l, here, there
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

// A server that does not answer in time is looked at ever more rarely, and as before once it does. The end of a
// connection is left to the reader.
func TestLooksInVainBecomeRare(t *testing.T) {
	l, here, there := lookedAt(t)
	b := make([]byte, 64)
	for _, want := range []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024} {
		if n := l.Read(b); n != 0 {
			t.Fatalf("read %d bytes, and nothing was sent", n)
		}
		asleep := l.rest
		for l.rest > 0 {
			if l.Read(b) != 0 {
				t.Fatal("read without a look")
			}
		}
		if asleep != want {
			t.Errorf("after %d looks in vain %d answers are awaited asleep, want %d", l.vain, asleep, want)
		}
	}
	redistest.Must(t, redistest.Err(io.WriteString(there, "+OK\r\n")))
	n := 0
	for n == 0 { // the kernel may take longer than one look
		l.rest = 0
		n = l.Read(b)
	}
	if got := string(b[:n]); got != "+OK\r\n" || l.vain != 0 {
		t.Errorf("read %q, after %d looks in vain", got, l.vain)
	}
	if l.Read(b); l.rest != 2 {
		t.Errorf("after a look that found something, and one in vain, %d answers are awaited asleep, want 2", l.rest)
	}
	there.Close()
	l.rest = 0
	redistest.Equal(t, l.Read(b), 0, "read %d bytes of a connection that has ended")
	redistest.Is(t, "what the reader gets then", redistest.Err(here.Read(b)), io.EOF)
}

// A program's own test may use a real server in a bubble, where no time passes while it reads.
func TestALookEndsWhereTimeStandsStill(t *testing.T) {
	l, _, _ := lookedAt(t)
	synctest.Test(t, func(t *testing.T) {
		redistest.Equal(t, l.Read(make([]byte, 64)), 0, "read %d bytes, and nothing was sent")
	})
}

// metered is a connection of a program's own: it counts what it reads.
type metered struct {
	*net.TCPConn
	count *int
}

func (m metered) Read(b []byte) (int, error) {
	n, err := m.TCPConn.Read(b)
	*m.count += n
	return n, err
}

// What the program's own connection does with the bytes must be done to all of them. With one processor a
// look would keep it from those that are to answer.
func TestNoLookPastTheReadOfTheProgramsOwnConnection(t *testing.T) {
	l, here, _ := lookedAt(t)
	if l.raw == nil {
		t.Error("a plain socket is not looked at")
	}
	l = new(Looker)
	if l.Watch(metered{here.(*net.TCPConn), new(int)}); l.raw != nil {
		t.Error("the looker reads from the socket under the program's connection")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l = new(Looker)
	if l.Watch(here); l.each != nil {
		t.Error("it looks, and keeps the only processor")
	}
}

// A reader that does not await the network finds what has come, and leaves the end to those that read as usual.
func TestAPeekDoesNotWait(t *testing.T) {
	l, here, there := lookedAt(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b := make([]byte, 64)
	if n, ok := l.Peek(b); n != 0 || !ok {
		t.Errorf("read %d bytes, %t, and nothing was sent", n, ok)
	}
	redistest.Must(t, redistest.Err(io.WriteString(there, "+OK\r\n")))
	peek := func() (n int, ok bool) {
		for ok = true; n == 0 && ok && ctx.Err() == nil; { // the kernel may take a moment
			n, ok = l.Peek(b)
		}
		return n, ok
	}
	if n, ok := peek(); string(b[:n]) != "+OK\r\n" || !ok {
		t.Errorf("read %q, %t", b[:n], ok)
	}
	there.Close()
	if n, ok := peek(); n != 0 || ok {
		t.Errorf("after the end: %d bytes, %t", n, ok)
	}
	here.Close()
	if n, ok := l.Peek(b); n != 0 || ok {
		t.Errorf("of a closed connection: %d bytes, %t", n, ok)
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }

func TestTheDocumentsSayHowLongACallerLooks(t *testing.T) {
	const connecting, architecture = "docs/connecting.md", "docs/architecture.md"
	doctest.Says(t, lookFor, architecture, "reads without sleeping for {} first")
	doctest.Says(t, lookFor, connecting, "without sleeping for up to {}")
}
