// The steps are the events that may happen next.

package model

import (
	"fmt"
	"strings"
)

// step is one event.
type step struct {
	what   string
	client int // -1: none
	member int // -1: none
}

func (s step) String() string {
	text := s.what
	if s.client >= 0 {
		text = fmt.Sprintf("%c %s", 'A'+s.client, text)
	}
	if s.member >= 0 {
		text = fmt.Sprintf("%s (server %d)", text, s.member+1)
	}
	return text
}

// next calls visit with every world that may follow w. If the step to that world is itself wrong,
// next also says what is wrong with it.
func (r *rules) next(w *world, visit func(s step, to world, wrong string)) {
	for c := range r.clients {
		r.clientSteps(w, c, visit)
		for m := range r.members {
			r.linkSteps(w, c, m, visit)
		}
	}
	if w.crashes > 0 {
		for m := range r.members {
			visit(step{"a server comes back without its data", -1, m}, r.crash(*w, m), "")
		}
	}
	r.ticks(w, visit)
}

// clientSteps are the steps of a client, and the outcomes of its writes.
func (r *rules) clientSteps(w *world, c int, visit func(step, world, string)) {
	do := func(what string, change func(to *world, c *client)) {
		to := *w
		change(&to, &to.clients[c])
		visit(step{what, c, -1}, to, "")
	}
	now := &w.clients[c]
	switch {
	case now.phase == idle:
		do("asks", func(_ *world, c *client) { r.ask(c) })
	case now.phase == asking:
		do("gives up", func(_ *world, c *client) { r.leave(c) })
		if r.queues() {
			r.waitSteps(w, c, visit)
		}
	case now.phase == inside && now.paused:
		do("goes on after a pause", func(_ *world, c *client) {
			c.paused = false
			r.tell(c)
		})
	case now.phase == inside:
		do("releases", func(_ *world, c *client) { r.leave(c) })
		do("is paused", func(_ *world, c *client) { c.paused = true })
		if !now.write {
			do("writes", func(_ *world, c *client) { c.write = true })
		}
	}
	if now.write {
		to := *w
		wrong := r.arrive(&to, &to.clients[c])
		visit(step{"'s write arrives", c, -1}, to, wrong)
	}
}

// arrive makes the resource check a client's write.
func (r *rules) arrive(w *world, c *client) (wrong string) {
	c.write = false
	if !r.noFence && c.token < w.fence {
		return ""
	}
	if c.order < w.newest {
		wrong = "the resource has taken a write of a holder that has been overtaken"
	}
	w.fence, w.newest = max(w.fence, c.token), max(w.newest, c.order)
	return wrong
}

// leave ends a client's hold, or its asking.
func (r *rules) leave(c *client) {
	c.phase, c.paused = leaving, false
	for m := range r.members {
		l := &c.links[m]
		l.reply, l.left, l.slow, l.granted, l.valid, l.aged = 0, 0, false, false, 0, false
	}
}

// tell ends the hold of a client that no longer has enough to rely on, if the client can be told.
func (r *rules) tell(c *client) {
	if c.phase == inside && !c.paused && c.backing() < r.quorum() {
		r.leave(c)
	}
}

// linkSteps are the requests and replies that a client and a member send and receive.
func (r *rules) linkSteps(w *world, c, m int, visit func(step, world, string)) {
	do := func(what string, change func(to *world, c *client, l *link)) {
		to := *w
		change(&to, &to.clients[c], &to.clients[c].links[m])
		visit(step{what, c, m}, to, "")
	}
	now, l := &w.clients[c], &w.clients[c].links[m]
	if l.request != nothing {
		what := [...]string{acquire: "'s request is executed", renew: "'s renewal is executed"}[l.request]
		run := func(to *world, l *link) {
			r.execute(to, c, m)
			l.request, l.notAfter = nothing, 0
		}
		if r.prompt {
			do(what+" and answered", func(to *world, c *client, l *link) {
				run(to, l)
				if l.reply != 0 && !c.paused {
					r.hear(to, c, l)
				}
			})
			what += ", and the answer is lost"
		}
		do(what, func(to *world, _ *client, l *link) {
			run(to, l)
			if r.prompt {
				r.unheard(l)
			}
		})
		if w.copies > 0 {
			do(what+", and a copy is still on its way", func(to *world, _ *client, _ *link) {
				to.copies--
				r.execute(to, c, m)
			})
		}
	}
	if l.reply != 0 && !now.paused {
		what := [...]string{granted: "hears that it is granted", refused: "hears that it is refused",
			displaced: "hears that it is refused, and had lost its place"}[l.reply]
		do(what, func(to *world, c *client, l *link) { r.hear(to, c, l) })
	}
	if !r.fleeting && now.phase == inside && !now.paused && l.granted && l.valid > 0 && l.request == nothing && l.reply == 0 {
		do("renews", func(_ *world, _ *client, l *link) {
			l.request, l.notAfter, l.left, l.slow = renew, l.valid, r.valid(), false
		})
	}
	if now.phase == leaving && !l.settled { // it releases again and again
		r.releaseSteps(w, c, m, visit)
	}
}

// execute makes the member execute the request that a client has sent.
func (r *rules) execute(w *world, c, m int) {
	who, l, at := &w.clients[c], &w.clients[c].links[m], &w.members[m]
	answer := refused
	switch holder := w.holder(m); {
	case l.request == renew && holder == c:
		answer = granted
	case l.request == acquire && at.quarantine > 0:
		// The member says that it has lost its data, and does not count.
	case l.request == acquire && holder == c:
		answer = granted
	case l.request == acquire && holder < 0:
		answer = granted
		r.give(w, c, m)
	case l.request == acquire:
		answer = r.queue(l)
	}
	if answer == granted {
		at.ttl = int8(r.lease)
	}
	if !r.queues() && who.order == 0 && r.heldBy(who) {
		w.orders++
		who.order = w.orders
	}
	if who.phase == asking || who.phase == inside {
		l.reply = answer // to a copy it is as good as the first
	}
}

// give makes the client the member's holder, with the next token.
func (r *rules) give(w *world, c, m int) {
	l, at := &w.clients[c].links[m], &w.members[m]
	l.holds, l.place = true, 0
	at.token++
	if !r.counted {
		at.clock = max(at.clock+1, at.token)
		at.token = at.clock
	}
	l.token = at.token
	if r.queues() {
		w.orders++
		l.order = w.orders
	}
}

// heldBy reports whether a majority has granted the client its lock. A member that has lost its
// data since then counts as long as the client relies on the member's answer.
func (r *rules) heldBy(c *client) bool {
	n := 0
	for _, l := range c.links {
		if l.holds || l.granted && l.valid > 0 || l.reply == granted && l.left > 0 {
			n++
		}
	}
	return n >= r.quorum()
}

// hear makes the client take in a reply.
func (r *rules) hear(w *world, c *client, l *link) {
	left := l.left
	if r.fromReply {
		left = r.valid()
	}
	if l.reply == granted {
		if !l.granted || left > l.valid {
			l.valid, l.aged = left, l.slow && !r.fromReply
		}
		l.granted = true
	} else {
		l.granted, l.valid, l.aged = false, 0, false
		if r.queues() && c.phase == asking {
			r.hearPlace(l, left)
		}
	}
	l.reply = 0
	if l.request == nothing {
		l.left, l.slow = 0, false
	}
	r.tell(c)
	enough := c.backing()
	if r.noRecheck {
		enough = c.grants()
	}
	if c.phase == asking && enough >= r.quorum() {
		r.enter(w, c)
	}
}

// enter makes the client a holder.
func (r *rules) enter(w *world, c *client) {
	c.phase = inside
	for _, l := range c.links {
		if l.granted {
			c.token = max(c.token, l.token)
		}
	}
	if r.queues() {
		c.order = c.links[0].order
	}
	for m := range r.members {
		if c.links[m].granted && !r.noWriteBack {
			w.members[m].token = max(w.members[m].token, c.token)
		}
	}
}

// release makes the member execute a release. The clean-up of a link is over when a release is
// answered after the time when no request of the link can take effect any more.
func (r *rules) release(w *world, m int, l *link) {
	if l.holds {
		l.holds, w.members[m].ttl = false, 0
	}
	l.place = 0
	if holder := w.holder(m); r.noOwner && holder >= 0 {
		w.clients[holder].links[m].holds, w.members[m].ttl = false, 0
	}
	l.settled = l.request == nothing || r.noSettling || r.noNotAfter || r.hasty && l.seated
}

// crash makes a member come back without its data.
func (r *rules) crash(w world, m int) world {
	w.crashes--
	for c := range w.clients {
		l := &w.clients[c].links[m]
		l.taken = l.taken || l.place > 0
		l.holds, l.place = false, 0
	}
	at := &w.members[m]
	at.ttl, at.token = 0, 0
	if r.members > 1 && !r.noQuarantine {
		at.quarantine = int8(r.lease)
	}
	if !r.clocksApart {
		// By the time the member counts again, its clock will have passed what the other clocks
		// show now.
		for _, other := range w.members {
			at.clock = max(at.clock, other.clock, other.token)
		}
	}
	return w
}

// ticks lets time pass, in each way in which the clients' clocks may go: any clock may lose the
// tick if it has lost none in a lease that is under way.
func (r *rules) ticks(w *world, visit func(step, world, string)) {
	for lose := range 1 << r.clients {
		to, may := *w, true
		for c := range r.clients {
			if lose>>c&1 == 1 {
				may = may && to.clients[c].loses()
			} else {
				to.clients[c].age()
			}
		}
		if !may {
			continue
		}
		r.serversAge(&to)
		for c := range r.clients {
			r.tell(&to.clients[c])
		}
		what := "a tick"
		for c := range r.clients {
			if lose>>c&1 == 1 {
				what += fmt.Sprintf(", of which %c's clock knows nothing", 'A'+c)
			}
		}
		visit(step{what, -1, -1}, to, "")
	}
}

// loses makes the client's clock lose a tick. It reports whether the clock may lose the tick and
// whether that makes a difference.
func (c *client) loses() bool {
	any := false
	for m := range c.links {
		l := &c.links[m]
		if l.left > 0 {
			if l.slow {
				return false
			}
			l.slow, any = true, true
		}
		if l.valid > 0 {
			if l.aged {
				return false
			}
			l.aged, any = true, true
		}
	}
	return any
}

// age lets a tick pass by the client's clock.
func (c *client) age() {
	for m := range c.links {
		l := &c.links[m]
		if l.left = max(l.left-1, 0); l.left == 0 {
			l.slow = false
		}
		if l.valid = max(l.valid-1, 0); l.valid == 0 {
			l.aged = false
		}
	}
}

// serversAge lets a tick pass by the servers' clocks.
func (r *rules) serversAge(w *world) {
	for m := range r.members {
		at := &w.members[m]
		at.quarantine = max(at.quarantine-1, 0)
		if at.ttl > 0 {
			at.ttl--
		}
		for c := range w.clients {
			l := &w.clients[c].links[m]
			if at.ttl == 0 {
				l.holds = false
			}
			if l.request != nothing && !r.noNotAfter {
				if l.notAfter--; l.notAfter == 0 {
					l.request = nothing
					if r.queues() && w.clients[c].phase == asking && l.reply == 0 {
						r.unheard(l)
					}
				}
			}
			l.place = max(l.place-1, 0)
		}
	}
}

// wrong says what is wrong with a world, or returns "" if nothing is wrong.
func (r *rules) wrong(w *world) string {
	in := 0
	for c := range w.clients {
		who := &w.clients[c]
		if who.phase == inside && (!who.paused || who.backing() >= r.quorum()) {
			in++
		}
		for m := range who.links {
			if l := &who.links[m]; l.settled && l.holds {
				return "a server holds the lock for a client whose clean-up is over"
			}
			if l := &who.links[m]; l.settled && l.place > 0 {
				return "a place is kept for a client whose clean-up is over"
			}
		}
	}
	if in > 1 && !r.overlaps {
		return "two are inside"
	}
	return ""
}

// summary shows what there is to see of a world.
func (r *rules) summary(w *world) string {
	var parts []string
	for m := range r.members {
		if c := w.holder(m); c >= 0 {
			parts = append(parts, fmt.Sprintf("server %d: %c for %d", m+1, 'A'+c, w.members[m].ttl))
		}
	}
	for c := range r.clients {
		who := &w.clients[c]
		if who.phase != inside {
			continue
		}
		state := fmt.Sprintf("%c is in, token %d, valid", 'A'+c, who.token)
		for m := range r.members {
			state += fmt.Sprintf(" %d", who.links[m].valid)
		}
		if who.paused {
			state += ", paused"
		}
		parts = append(parts, state)
	}
	return strings.Join(parts, "; ")
}
