// A node is one subscription connection to one server, for as long as that connection lasts.

package pubsub

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

var (
	errRetired   = errors.New("no channels left")
	errReplaced  = errors.New("another server has taken over")
	errSilent    = errors.New("no answer in time")
	errOutOfStep = errors.New("reply out of step")
)

type node struct {
	service *Service
	home    string
	wake    chan struct{} // tells write that there is something to write; capacity 1

	// Guarded by Service.mu.
	channels map[*channel]struct{} // the channels placed here
	backlog  backlog
	sent     []*command // not answered yet, the oldest first
	heard    time.Time  // when the last reply or message came
	retired  bool       // it has no channels and gets no more
	restored bool       // it has called Reconnected

	suspected bool // it must send a PING now
	replaced  bool // it must end, and another connection take its place
}

func newNode(s *Service, home string, sharded bool) *node {
	return &node{
		service:  s,
		home:     home,
		wake:     make(chan struct{}, 1),
		channels: make(map[*channel]struct{}),
		backlog:  newBacklog(sharded),
	}
}

// enqueue places ch on n. It is called under Service.mu.
func (n *node) enqueue(ch *channel) {
	ch.stage, ch.node = queued, n
	n.channels[ch] = struct{}{}
	n.backlog.addJoin(ch)
	poke(n.wake)
}

// unsubscribe makes n unsubscribe from ch. It is called under Service.mu.
func (n *node) unsubscribe(ch *channel) {
	n.backlog.addLeave(ch.name)
	poke(n.wake)
}

// release takes ch off n. With its last channel n ends. It is called under Service.mu.
func (n *node) release(ch *channel) {
	ch.node = nil
	delete(n.channels, ch)
	if len(n.channels) > 0 {
		return
	}
	n.retired = true
	if s := n.service; s.nodes[n.home] == n {
		delete(s.nodes, n.home)
	}
	poke(n.wake)
}

// run connects and serves until the connection fails or is no longer needed, and then gives the
// channels back to the router.
func (n *node) run() { n.fail(n.serve()) }

func (n *node) serve() error {
	s := n.service
	client, err := s.src.Dial(n.home)
	if err != nil {
		return err
	}
	w, err := openWire(s.ctx, client, n.backlog.sharded, s.cfg)
	if err != nil {
		return err
	}
	n.begin(time.Now())

	var readErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readErr = n.read(w)
	}()
	writeErr := n.write(w, ended)
	w.close()
	<-ended
	return cmp.Or(writeErr, readErr)
}

// begin records the PING with which the connection was opened.
func (n *node) begin(now time.Time) {
	n.service.mu.Lock()
	defer n.service.mu.Unlock()
	n.heard = now
	n.sent = append(n.sent, &command{verb: ping, sentAt: now})
}

// write sends the node's commands until a write fails, the reader has ended, the server is
// silent for too long, or the node is retired.
func (n *node) write(w *wire, readerEnded <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		cmd, wait, err := n.next(time.Now())
		if err != nil {
			return err
		}
		if cmd != nil {
			if err := w.send(cmd.verb, cmd.names); err != nil {
				return err
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-readerEnded:
			return nil
		case <-n.wake:
		case <-timer.C:
		}
	}
}

// next returns the command to write now. It enters the command as sent already, because the
// answer may come before the write returns. If there is none, it returns how long to wait.
func (n *node) next(now time.Time) (*command, time.Duration, error) {
	cfg := &n.service.cfg
	n.service.mu.Lock()
	defer n.service.mu.Unlock()

	switch {
	case n.retired:
		return nil, 0, errRetired
	case n.replaced:
		return nil, 0, errReplaced
	}
	if len(n.sent) < window {
		if cmd := n.backlog.take(n); cmd != nil {
			return n.enter(cmd, now), 0, nil
		}
	}
	if len(n.sent) == 0 {
		if wait := cfg.Heartbeat - now.Sub(n.heard); wait > 0 && !n.suspected {
			return nil, wait, nil
		}
		n.suspected = false
		return n.enter(&command{verb: ping}, now), 0, nil
	}
	since := n.heard
	if sentAt := n.sent[0].sentAt; sentAt.After(since) {
		since = sentAt
	}
	if wait := cfg.PongTimeout - now.Sub(since); wait > 0 {
		return nil, wait, nil
	}
	return nil, 0, errSilent
}

func (n *node) enter(cmd *command, now time.Time) *command {
	cmd.sentAt = now
	n.sent = append(n.sent, cmd)
	return cmd
}

// fail gives the channels of n, whose connection has ended, back to the router.
func (n *node) fail(err error) {
	s := n.service
	now := time.Now()

	s.mu.Lock()
	if n.retired || s.closed {
		s.mu.Unlock()
		return
	}
	s.stale[n.home] = struct{}{}
	s.retry(slices.Collect(maps.Keys(n.channels)), now)
	level := s.trouble.level(now)
	s.mu.Unlock()

	s.cfg.Logger.Log(s.ctx, level, "pubsub: connection lost", "home", n.home, "error", err)
}
