// In the queue, clients have places, and a message hands over the lock.
//
// A question keeps a place for as long as a lease lasts. The order of the queue does not matter to
// the claims, so the model has none: a release hands the lock to any client with a place that is
// kept, and a client that finds the lock free takes it. A client that waits counts in link.valid
// for how long its place is kept, as far as the client knows.

package model

import "fmt"

// waiting is the state of a client's wait at one member.
type waiting struct {
	place int8 // for how long the member keeps the place; 0: the member does not keep it
	taken bool // gone: the lock was handed to the client, which has not asked since

	// This is the message, which the client may hear at any time or never.
	told      int8 // the message's token; 0: there is no message
	toldOrder int8 // the order of that grant

	seated bool // the client has heard of its place
	doubt  bool // the client must ask: a message may be from before
}

// queues reports whether a client that is refused waits.
func (r *rules) queues() bool { return r.asks > 0 }

// ask sends the client's question, which also keeps the client's place.
func (r *rules) ask(c *client) {
	c.phase = asking
	if r.queues() {
		c.asked++
	}
	for m := range r.members {
		l := &c.links[m]
		l.request, l.notAfter, l.left, l.slow = acquire, int8(r.window), r.valid(), false
		if r.fromUnheard {
			l.valid, l.aged = l.left, false
		}
	}
}

// waitSteps are the steps of a client that waits.
func (r *rules) waitSteps(w *world, c int, visit func(step, world, string)) {
	do := func(what string, change func(c *client, l *link)) {
		to := *w
		change(&to.clients[c], &to.clients[c].links[0])
		visit(step{what, c, -1}, to, "")
	}
	now, l := &w.clients[c], &w.clients[c].links[0]
	if l.request == nothing && l.reply == 0 && int(now.asked) < r.asks {
		do("asks again", func(c *client, _ *link) { r.ask(c) })
	}
	if l.reply != 0 && !r.prompt {
		do("waits no more for an answer", func(_ *client, l *link) { r.unheard(l) })
	}
	for from := range r.clients {
		sent := w.clients[from].links[0].waiting
		if sent.told == 0 || from != c && !r.anyOwner || !r.believes(l) {
			continue
		}
		do(fmt.Sprintf("hears that %c was handed the lock", 'A'+from), func(c *client, l *link) {
			r.begins(c, l, sent)
		})
	}
}

// unheard makes the client do without an answer. The client cannot tell what the request has done,
// or will do.
func (r *rules) unheard(l *link) {
	l.reply, l.left, l.slow = 0, 0, false
	l.doubt = l.doubt || r.queues() && !r.noDoubt
}

// believes reports whether a message is enough for the client. While the client waits for an
// answer, it listens to no message.
func (r *rules) believes(l *link) bool {
	if r.fromUnheard {
		return l.valid > 0
	}
	sure := l.request == nothing && l.reply == 0 && !l.doubt
	return sure && (l.valid > 0 || r.noRecheck || r.fromMessage)
}

// begins makes the client a holder by a message. The client relies on its place for as long as the
// place is kept, as far as the client knows.
func (r *rules) begins(c *client, l *link, sent waiting) {
	c.phase, c.token, c.order = inside, sent.told, sent.toldOrder
	l.granted = true
	if r.fromMessage {
		l.valid, l.aged = r.valid(), false
	}
}

// queue makes the member take or keep a place for a client that it refuses, and returns the
// member's answer.
func (r *rules) queue(l *link) (answer int8) {
	if !r.queues() {
		return refused
	}
	answer = refused
	if l.taken && l.seated {
		answer = displaced
	}
	l.place, l.taken = int8(r.lease), false
	return answer
}

// hearPlace tells the client that its place is kept. If the client had lost its place, it may have
// been handed the lock and have lost that too: the message may still come.
func (r *rules) hearPlace(l *link, left int8) {
	l.valid, l.aged = left, l.slow
	l.seated = true
	if l.reply == displaced && !r.oldMessage {
		l.doubt = true
	}
}

// releaseSteps are the possible outcomes of a client's release: it may hand the lock to any client
// in the queue.
func (r *rules) releaseSteps(w *world, c, m int, visit func(step, world, string)) {
	freed := *w
	r.release(&freed, m, &freed.clients[c].links[m])
	what, next := "'s release is executed", false
	for heir := range r.clients {
		l := &freed.clients[heir].links[m]
		if l.place == 0 || freed.holder(m) >= 0 {
			continue
		}
		next = true
		to := freed
		r.handOver(&to, heir, m)
		handed := fmt.Sprintf("%s, and hands the lock to %c", what, 'A'+heir)
		visit(step{handed, c, m}, to, "")
		if l.told != 0 { // of two messages, either may be the one that arrives
			at := &to.clients[heir].links[m]
			at.told, at.toldOrder = l.told, l.toldOrder
			visit(step{handed + ", of which it will not hear", c, m}, to, "")
		}
	}
	if !next {
		visit(step{what, c, m}, freed, "")
	}
}

// handOver makes the client the holder, for as long as its place was kept, and sends the client a
// message.
func (r *rules) handOver(w *world, c, m int) {
	l := &w.clients[c].links[m]
	w.members[m].ttl = l.place
	r.give(w, c, m)
	l.place, l.taken = 0, true
	l.told, l.toldOrder = l.token, l.order
}

// dull drops everything for which no step asks any more.
func (l *link) dull(c *client, r *rules) {
	if c.phase == inside || c.phase == leaving {
		l.waiting = waiting{place: l.place, seated: l.seated && r.hasty && !l.settled}
	}
	if l.doubt && !r.anyOwner {
		l.told, l.toldOrder = 0, 0
	}
}
