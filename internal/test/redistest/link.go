// A link is one connection through a FaultProxy: requests go one way and replies the other. The
// queue between them tells which reply belongs to which command.

package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// link is one client connection, with its own connection to the server. Two goroutines work on
// it, requests and replies; run waits for both.
//
// The head of the queue belongs to the goroutine that works on it. That is replies, except when
// requests appends an entry that the server never sees to an empty queue: then it is requests.
// The head is removed only when that work is done, so neither goroutine overtakes the other in
// writing to the client.
type link struct {
	id     int64
	proxy  *FaultProxy
	client net.Conn
	server net.Conn

	mu       sync.Mutex
	queue    []*pending
	channels map[string]map[string]bool // subscriptions by kind: "", "P", "S"
	pushes   bool                       // the connection has seen RESP3 push frames

	silent atomic.Bool // nothing is delivered to the client any more
	hole   atomic.Bool // nothing is delivered to the server either
}

// pending is a command whose reply is still to come.
type pending struct {
	plan
	name    string
	args    int
	frames  int  // reply frames still to come; 0 until the first is seen
	local   bool // never sent to the server
	swallow bool // the reply is not for the client
}

func (l *link) run() {
	var wg sync.WaitGroup
	wg.Go(l.requests)
	wg.Go(l.replies)
	wg.Wait()
	l.close()
}

func (l *link) close() {
	l.client.Close()
	l.server.Close()
}

// requests reads commands until the client is gone.
func (l *link) requests() {
	r := bufio.NewReader(l.client)
	for {
		f, err := readFrame(r, -1)
		if err != nil {
			l.malformed(err)
			break
		}
		if len(f.words) == 0 {
			continue // an empty line
		}
		if !l.request(f) {
			// Go on reading, so that the client's closing is noticed.
			io.Copy(io.Discard, r)
			break
		}
	}
	if !l.hole.Load() {
		// Send a FIN, not a reset: the server shall run the commands that were sent before it.
		closeWrite(l.server)
	}
}

// request handles one command, and reports whether the commands behind it count.
func (l *link) request(f frame) bool {
	e := &pending{name: strings.ToUpper(f.words[0]), args: len(f.words) - 1}
	e.plan = l.proxy.decide(l.id, e.name, f.words[1:])
	if !l.hold(e.plan) {
		return false
	}
	if e.outcome == DropBefore || e.outcome == answer {
		e.local = true
		l.expectLocal(e)
		return !e.outcome.ends()
	}
	if e.outcome == Duplicate {
		l.forward(&pending{name: e.name, args: e.args, swallow: true}, f.raw)
	}
	l.forward(e, f.raw)
	return !e.outcome.ends()
}

// hold waits as the plan says; it returns false if the proxy closes first.
func (l *link) hold(p plan) bool {
	if p.delay > 0 {
		timer := time.NewTimer(p.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.proxy.done:
			return false
		}
	}
	return l.awaitChannel(p.request)
}

func (l *link) awaitChannel(ch <-chan struct{}) bool {
	if ch == nil {
		return true
	}
	select {
	case <-ch:
		return true
	case <-l.proxy.done:
		return false
	}
}

// forward queues the command and then sends it, in this order because the reply may be quick.
func (l *link) forward(e *pending, raw []byte) {
	l.mu.Lock()
	l.queue = append(l.queue, e)
	l.mu.Unlock()
	if !l.hole.Load() {
		// A failure needs no handling: replies sees the same connection end.
		l.server.Write(raw)
	}
}

// expectLocal queues a command that the server never sees. If nothing is queued before it, its turn
// is now.
func (l *link) expectLocal(e *pending) {
	l.mu.Lock()
	l.queue = append(l.queue, e)
	first := len(l.queue) == 1
	l.mu.Unlock()
	if first {
		l.settle(e)
		l.next()
	}
}

// settle carries out a local entry.
func (l *link) settle(e *pending) {
	if e.outcome == DropBefore {
		l.close()
		return
	}
	l.deliver([]byte(e.message + "\r\n"))
}

// next removes the head, and settles the local entries that come to the front.
func (l *link) next() {
	for {
		l.mu.Lock()
		l.queue = l.queue[1:]
		head := l.head()
		l.mu.Unlock()
		if head == nil || !head.local {
			return
		}
		l.settle(head)
	}
}

// head is called with mu held.
func (l *link) head() *pending {
	if len(l.queue) == 0 {
		return nil
	}
	return l.queue[0]
}

// replies reads frames until the server is gone.
func (l *link) replies() {
	r := bufio.NewReader(l.server)
	for {
		f, err := readFrame(r, 2)
		if err != nil {
			l.malformed(err)
			break
		}
		l.reply(f)
	}
	if !l.silent.Load() {
		l.client.Close()
	}
}

func (l *link) reply(f frame) {
	l.mu.Lock()
	head := l.head()
	if head != nil && head.outcome == Silence {
		l.silent.Store(true)
	}
	if l.silent.Load() {
		l.mu.Unlock()
		return
	}
	l.pushes = l.pushes || f.kind == '>'
	if head == nil || head.local || l.unsolicited(f, head) {
		l.mu.Unlock()
		l.deliver(f.raw)
		return
	}
	complete := l.count(f, head)
	l.mu.Unlock()
	l.conclude(f, head, complete)
	if complete {
		l.next()
	}
}

// conclude delivers one frame of the head's reply, as the head's plan says.
func (l *link) conclude(f frame, head *pending, complete bool) {
	switch {
	case head.outcome == HalfReply:
		l.deliver(f.raw[:len(f.raw)/2])
		l.close()
	case head.outcome == CloseAfterExec:
		if complete {
			l.close()
		}
	case !head.swallow && l.awaitChannel(head.reply):
		l.deliver(f.raw)
	}
}

// deliver writes to the client. If that fails, the client is gone, but the server's replies are
// still read, so that the server runs the commands under way.
func (l *link) deliver(raw []byte) {
	if l.silent.Load() {
		return
	}
	step := len(raw)
	if l.proxy.trickles.Load() {
		step = 1
	}
	for piece := range slices.Chunk(raw, step) {
		if _, err := l.client.Write(piece); err != nil {
			l.silent.Store(true)
			return
		}
	}
}

// malformed fails the test if the bytes could not be cut into frames. A connection that merely
// ended is not an error.
func (l *link) malformed(err error) {
	if errors.Is(err, errProtocol) {
		l.proxy.t.Errorf("redistest: connection %d: %v", l.id, err)
	}
}

// closeWrite ends one direction, which both kinds of connection in use can do.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// unsolicited reports whether f is not a reply to head, but a message or the notice of a
// subscription that the server ended of its own accord. It is called with mu held.
func (l *link) unsolicited(f frame, head *pending) bool {
	kind := ""
	if len(f.words) > 0 {
		kind = f.words[0]
	}
	switch f.kind {
	case '>':
		return !confirms(head.name, kind)
	case '*': // in RESP2 only a subscribed connection gets messages, and nearly nothing else
		if l.pushes || l.subscriptions() == 0 {
			return false
		}
		message := []string{"message", "pmessage", "smessage", "sunsubscribe"}
		return slices.Contains(message, kind) && !confirms(head.name, kind)
	}
	return false
}

// confirms reports whether a frame of this kind answers the command. The kind is the lower case
// name of the command, except that an embedded server answers SSUBSCRIBE with "subscribe".
func confirms(name, kind string) bool {
	kind = strings.ToUpper(kind)
	return isSubscription(name) && (kind == name || "S"+kind == name)
}

func isSubscription(name string) bool { return strings.HasSuffix(name, "SUBSCRIBE") }

func (l *link) subscriptions() int {
	n := 0
	for _, channels := range l.channels {
		n += len(channels)
	}
	return n
}

// count records one frame of the head's reply and reports whether it was the last: a
// subscription is confirmed channel by channel, every other reply has one frame. It is called
// with mu held.
func (l *link) count(f frame, head *pending) bool {
	if !isSubscription(head.name) || f.kind == '-' {
		return true
	}
	family, unsubscribes := subscriptionKind(head.name)
	channels := l.channels[family]
	if channels == nil {
		channels = map[string]bool{}
		l.channels[family] = channels
	}
	if head.frames == 0 {
		head.frames = head.args
		if head.args == 0 { // from all channels; even with none there is one frame
			head.frames = max(1, len(channels))
		}
	}
	if len(f.words) > 1 && unsubscribes {
		delete(channels, f.words[1])
	} else if len(f.words) > 1 {
		channels[f.words[1]] = true
	}
	head.frames--
	return head.frames == 0
}

func subscriptionKind(name string) (family string, unsubscribes bool) {
	rest, unsubscribes := strings.CutSuffix(name, "UNSUBSCRIBE")
	if !unsubscribes {
		rest = strings.TrimSuffix(name, "SUBSCRIBE")
	}
	return rest, unsubscribes
}
