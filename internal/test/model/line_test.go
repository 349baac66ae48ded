// The line of one process: its waiters take turns in one place of the queue, the seat.
//
// Process P has two goroutines that wait for the lock, A and B, and a goroutine that only tries, C.
// Q is another process. Q holds the lock when the exploration begins, and may try once more later.
// A request is executed and answered, or executed and not answered, or executed late while its
// repetition is answered. A message may stay unread for any time. P passes nothing on by itself,
// and nobody renews.

package model

import (
	"fmt"
	"strings"
)

// lineRules say how much may go wrong, and which rules are left out.
type lineRules struct {
	lease   int8 // how long a hold lasts, and a place is kept, in ticks
	unheard int8 // how many requests may stay without an answer
	late    int8 // how many of those may be executed later

	ghosts bool // the lock may be handed to a place without a waiter, while it is kept

	without lineRule // a rule that is left out
}

// lineRule is one rule of the protocol.
type lineRule int8

const (
	noRule        lineRule = iota
	staysInDoubt           // a waiter that takes over the seat goes on doubting messages
	doubtsUnheard          // a waiter doubts messages after a request that was not answered
	doubtsUnknown          // a waiter doubts messages in a seat without a known number
	doubtsLost             // a waiter doubts messages when its place was lost
	keptLately             // a head believes messages only in the first half of the seat's time
	leavesInDoubt          // a head that doubts takes the seat with it when it gives up
	dropsJoining           // a release that takes a seat gives it up if no waiter wants it any more
	agesUnheard            // a seat that came with a grant, after an unheard request, may be long over
	cleansUpLong           // a clean-up goes on until a late request can do nothing any more
	cleansUpNext           // a clean-up also takes the next owner of the seat out of the queue
	sparesWaiters          // a clean-up does not do so while the line has that seat
)

// These are the owners. No owner is used twice.
const (
	nobody    int8 = iota
	firstOfQ       // Q holds as this owner when the exploration begins
	laterOfQ       // Q tries as this owner
	ownOfA         // the owner of A's first request; those of B and C follow
	firstSeat = ownOfA + goroutines
	owners    = firstSeat + 3
)

// goroutines is how many goroutines P has. The last one only tries.
const goroutines = 3

// stand says what a goroutine is doing.
type stand int8

const (
	away    stand = iota
	trying        // its first request is under way
	queuing       // it is in the line
	holding
	ending // its release is under way
	gone
)

// goroutine is one goroutine of P.
type goroutine struct {
	stand  stand
	owner  int8
	late   bool // a request of that owner was not answered
	doubt  bool // it must not believe a message
	next   int8 // the owner that is to have the seat when it is granted the lock
	asking bool // it asks as the head
	token  int8
	valid  int8 // for how long the goroutine may rely on its hold
	again  int8 // the owner for which a late request may take a place with this hold
	leaves int8 // the owner that leaves the queue with its release
	joins  int8 // the owner for which its release takes a place
	freed  bool // the release was executed, but not answered
	drops  bool // the place in joins is to be given up, because no waiter wants it any more
}

// lineWorld is one state of the model.
type lineWorld struct {
	redis
	p    [goroutines]goroutine
	line [2]int8 // the head and the goroutine behind it, by number from 1; 0: none

	seat  seat
	seats int8 // how many owners were made for the seat

	settling [owners]cleanUp

	q     bool         // Q holds the lock
	tries int8         // how often Q may still try
	best  int8         // the greatest token of all holders so far
	begun [owners]bool // the owners of P that have held the lock

	unheard int8 // how much is left of what the rules allow
	late    int8
}

// redis is what the server knows, and what is on its way to or from the server.
type redis struct {
	holder int8
	handed bool // handed to a holder that has not asked since
	ttl    int8
	token  int8
	kept   [owners]int8 // for how long places are kept

	told    message // the message to P, unread
	request request // the late request of P
}

type message struct{ owner, token, left int8 }

type request struct {
	owner, next int8
	head        bool // the request takes a place if it is refused
	notAfter    int8
}

// seat is what P knows of its place in the queue.
type seat struct {
	owner int8
	known bool // its number is known
	valid int8 // for how long the place is kept, at the least
	asked bool // a head has asked as the owner of the seat
}

// cleanUp says that an owner is being given up.
type cleanUp struct {
	on     bool
	late   bool // it goes on until a late request can do nothing any more
	leaves int8 // the owner that leaves the queue together with that owner
}

func (r *lineRules) begin() lineWorld {
	w := lineWorld{q: true, tries: 1, best: 1, unheard: r.unheard, late: r.late}
	w.redis = redis{holder: firstOfQ, ttl: r.lease, token: 1}
	for i := range w.p {
		w.p[i].owner = ownOfA + int8(i)
	}
	return w
}

// visitor is called with each step.
type visitor func(what string, change func(w *lineWorld))

func (r *lineRules) next(w *lineWorld, visit func(step, lineWorld, string)) {
	do := func(what string, change func(w *lineWorld)) {
		to := *w
		change(&to)
		visit(step{what, -1, -1}, to, to.entered(w))
	}
	for i := range w.p {
		r.memberSteps(w, i, do)
	}
	r.qSteps(w, do)
	r.serverSteps(w, do)
	for x := range w.settling {
		if w.settling[x].on {
			r.settleSteps(w, int8(x), do)
		}
	}
	do("a tick", r.tick)
}

// qSteps are the steps of Q.
func (r *lineRules) qSteps(w *lineWorld, do visitor) {
	switch {
	case w.q:
		r.releases(w, "Q releases", w.holder, nobody, nobody, do, func(w *lineWorld) { w.q = false })
	case w.tries > 0 && w.holder == nobody && !w.awaited():
		do("Q tries and is granted the lock", func(w *lineWorld) {
			w.tries--
			w.q = true
			w.grant(laterOfQ, r.lease)
		})
	}
}

// memberSteps are the steps of one goroutine of P.
func (r *lineRules) memberSteps(w *lineWorld, i int, do visitor) {
	name := string(rune('A' + i))
	switch g := w.p[i]; {
	case g.stand == away && i == goroutines-1:
		if w.holder == nobody && !w.awaited() && !w.holds() {
			do(name+" tries and is granted the lock", func(w *lineWorld) {
				w.grant(w.p[i].owner, r.lease)
				w.begin(i, w.token, r.lease)
			})
		}
	case g.stand == away && w.line[0] == 0 && !w.holds():
		do(name+" asks for the first time", func(w *lineWorld) { w.p[i].stand = trying })
	case g.stand == away:
		do(name+" joins the line", func(w *lineWorld) { w.join(i) })
	case g.stand == trying:
		r.firstAnswer(w, i, name, do)
	case g.stand == queuing:
		do(name+" gives up", func(w *lineWorld) { r.giveUp(w, i) })
		if w.head() == i {
			r.headSteps(w, i, name, do)
		}
	case g.stand == holding:
		do(name+" begins to release", func(w *lineWorld) { r.beginRelease(w, i) })
	case g.stand == ending:
		r.releaseSteps(w, i, name, do)
	}
}

// firstAnswer is the outcome of a first request, which takes no place.
func (r *lineRules) firstAnswer(w *lineWorld, i int, name string, do visitor) {
	g := w.p[i]
	free := w.holder == g.owner || w.holder == nobody && !w.awaited()
	if free {
		do(name+"'s first request is granted", func(w *lineWorld) {
			r.execute(w, request{owner: g.owner})
			w.begin(i, w.token, r.lease)
		})
	} else {
		do(name+"'s first request is refused", func(w *lineWorld) { w.join(i) })
	}
	r.unheardSteps(w, i, name+"'s first request", do)
}

// unheardSteps are the cases in which a request is executed and not answered, or is late. The
// request is sent again.
func (r *lineRules) unheardSteps(w *lineWorld, i int, what string, do visitor) {
	if w.unheard == 0 {
		return
	}
	unheard := func(w *lineWorld) *goroutine {
		w.unheard--
		g := &w.p[i]
		g.late, g.again = true, g.next
		g.doubt = g.doubt || r.without != doubtsUnheard
		return g
	}
	do(what+" is executed, and not answered", func(w *lineWorld) {
		g := unheard(w)
		r.execute(w, request{owner: g.owner, next: g.next, head: g.asking})
	})
	if w.late > 0 && w.request == (request{}) {
		do(what+" is late", func(w *lineWorld) {
			w.late--
			g := unheard(w)
			w.request = request{g.owner, g.next, g.asking, 1}
		})
	}
}

// headSteps are the steps of the head of the line.
func (r *lineRules) headSteps(w *lineWorld, i int, name string, do visitor) {
	g := w.p[i]
	if !g.asking {
		do(name+" asks in the seat", func(w *lineWorld) { r.ask(w, i) })
		if r.believes(w, g) {
			do(name+" hears that it was handed the lock", func(w *lineWorld) { r.hear(w, i) })
		}
		return
	}
	do(name+"'s request is answered", func(w *lineWorld) {
		g := &w.p[i]
		placed := w.kept[g.owner] > 0
		granted, number := r.execute(w, request{owner: g.owner, next: g.next, head: true})
		g.asking = false
		if granted {
			w.seat = seat{owner: nobody}
			if number {
				w.seat = seat{owner: g.next, known: true, valid: r.lease}
				if g.late && r.without != agesUnheard {
					w.seat.valid = 0 // an earlier sending of the request may have taken the seat
				}
			}
			w.leave(i)
			w.begin(i, w.token, r.lease)
			return
		}
		g.doubt = g.doubt || w.seat.known && !placed && r.without != doubtsLost
		w.seat.known, w.seat.valid = true, r.lease
	})
	r.unheardSteps(w, i, name+"'s request", do)
}

// believes reports whether a message is enough for the head.
func (r *lineRules) believes(w *lineWorld, g goroutine) bool {
	lately := 2*w.seat.valid > r.lease || r.without == keptLately && w.seat.valid > 0
	return w.seat.owner != nobody && w.told.owner == w.seat.owner && !g.doubt && lately && w.told.left >= w.seat.valid
}

// ask prepares the head's request.
func (r *lineRules) ask(w *lineWorld, i int) {
	g := &w.p[i]
	g.asking = true
	switch {
	case w.seat.owner == nobody:
		w.seat = seat{owner: g.owner}
	case !w.seat.known && r.without != doubtsUnknown:
		g.doubt = true
	}
	w.seat.asked = true
	switch {
	case w.line[1] == 0 && !g.doubt:
		g.next = nobody
	case w.line[1] != 0 && g.next == nobody:
		g.next = w.newSeat()
	}
	r.become(w, i)
}

// become makes a goroutine go on as the owner of the seat.
func (r *lineRules) become(w *lineWorld, i int) {
	g := &w.p[i]
	if g.owner == w.seat.owner {
		return
	}
	if g.late {
		w.settle(g.owner, cleanUp{late: true})
		g.late = false
		if r.without == staysInDoubt {
			g.doubt = false
		}
	}
	g.owner = w.seat.owner
}

// hear makes the head a holder by a message.
func (r *lineRules) hear(w *lineWorld, i int) {
	r.become(w, i)
	valid := min(w.seat.valid, w.told.left)
	w.seat = seat{}
	w.leave(i)
	w.p[i].next = nobody
	w.begin(i, w.told.token, valid)
}

// giveUp ends a goroutine's wait.
func (r *lineRules) giveUp(w *lineWorld, i int) {
	g := &w.p[i]
	head, late := w.head() == i, g.late
	w.leave(i)
	if head && w.seat.owner != nobody && (g.doubt && r.without != leavesInDoubt || w.line[0] == 0) {
		orphan := w.seat.owner
		r.drop(w)
		if g.late && g.owner != orphan {
			w.settle(g.owner, cleanUp{late: true})
			late = false
		}
		w.settle(orphan, cleanUp{late: late})
	} else if late {
		w.settle(g.owner, cleanUp{late: true})
	}
	if g.doubt && g.next != nobody {
		w.settle(g.next, cleanUp{late: late})
	}
	*g = goroutine{stand: gone}
}

// beginRelease ends a hold. Its release takes the seat or gives it up.
func (r *lineRules) beginRelease(w *lineWorld, i int) {
	g := &w.p[i]
	g.stand, g.token, g.valid = ending, 0, 0
	if w.line[0] == 0 && w.seat.owner != nobody {
		g.leaves = w.seat.owner
		r.drop(w)
	}
	if head := w.head(); head >= 0 && w.seat.owner == nobody && !w.p[head].asking && !w.p[head].doubt {
		w.seat = seat{owner: w.newSeat(), valid: r.lease}
		g.joins = w.seat.owner
	}
}

// releaseSteps are the possible outcomes of a release.
func (r *lineRules) releaseSteps(w *lineWorld, i int, name string, do visitor) {
	g := w.p[i]
	held := w.holder == g.owner
	r.releases(w, name+"'s release is answered", g.owner, g.leaves, g.joins, do, func(w *lineWorld) {
		if g.joins != nobody {
			w.seated(g.joins, held, w.p[i].drops)
		}
		if g.late {
			w.settle(g.owner, cleanUp{late: true, leaves: r.withNext(g.again)})
		}
		w.p[i] = goroutine{stand: gone}
	})
	if w.unheard > 0 && !g.freed {
		r.releases(w, name+"'s release is executed, and not answered", g.owner, g.leaves, g.joins, do, func(w *lineWorld) {
			w.unheard--
			w.p[i].freed = true
		})
	}
}

// withNext returns the owner that leaves the queue when a late grant is given up.
func (r *lineRules) withNext(next int8) int8 {
	if r.without == cleansUpNext {
		return nobody
	}
	return next
}

// seated tells the line whether a release has taken the seat.
func (w *lineWorld) seated(owner int8, number, orphan bool) {
	if w.seat.owner == owner {
		w.seat.known = w.seat.known || number
		if orphan = !number && !w.seat.asked || w.line[0] == 0; orphan {
			w.seat = seat{}
		}
	}
	if orphan {
		w.settle(owner, cleanUp{})
	}
}

// drop leaves the line without a seat.
func (r *lineRules) drop(w *lineWorld) {
	for i := range w.p {
		g := &w.p[i]
		g.drops = g.drops || r.without != dropsJoining && g.stand == ending && g.joins == w.seat.owner
	}
	w.seat = seat{}
}

// settleSteps give up an owner once. The clean-up is over when no late request can change anything
// any more.
func (r *lineRules) settleSteps(w *lineWorld, x int8, do visitor) {
	leaves := w.settling[x].leaves
	if leaves == w.seat.owner && r.without != sparesWaiters {
		leaves = nobody
	}
	over := !w.settling[x].late || w.request == request{} || r.without == cleansUpLong
	if !over && w.holder != x && w.kept[x] == 0 && w.kept[leaves] == 0 {
		return // nothing would change
	}
	r.releases(w, fmt.Sprintf("the clean-up of %s is executed", ownerName(x)), x, leaves, nobody, do, func(w *lineWorld) {
		if over {
			w.settling[x] = cleanUp{}
		}
	})
}

// serverSteps are the late requests.
func (r *lineRules) serverSteps(w *lineWorld, do visitor) {
	if w.request != (request{}) {
		do("the late request is executed", func(w *lineWorld) {
			late := w.request
			w.request = request{}
			r.execute(w, late)
		})
	}
}

// execute makes the server execute a request.
func (r *lineRules) execute(w *lineWorld, q request) (granted, number bool) {
	fresh := w.holder != q.owner || w.handed
	switch {
	case w.holder == q.owner:
		w.handed, w.ttl = false, r.lease
	case w.holder == nobody && (w.kept[q.owner] > 0 || !w.awaited()):
		w.grant(q.owner, r.lease)
	default:
		if q.head {
			w.kept[q.owner] = r.lease
		}
		return false, false
	}
	w.kept[q.owner] = 0
	if fresh && q.next != nobody {
		w.kept[q.next] = r.lease
	}
	return true, q.next != nobody && w.kept[q.next] > 0
}

// releases makes the server execute a release, and hand the lock to any owner in the queue.
func (r *lineRules) releases(w *lineWorld, what string, owner, leaves, joins int8, do visitor, then func(w *lineWorld)) {
	free := func(w *lineWorld) {
		if w.holder == owner {
			w.holder, w.handed, w.ttl = nobody, false, 0
			if joins != nobody {
				w.kept[joins] = r.lease
			}
		} else {
			w.kept[owner] = 0
		}
		w.kept[leaves] = 0
	}
	freed := *w
	free(&freed)
	if freed.holder != nobody || !freed.awaited() {
		do(what, func(w *lineWorld) {
			free(w)
			then(w)
		})
		return
	}
	for heir, left := range freed.kept {
		if left == 0 {
			continue
		}
		heir := int8(heir)
		handed := what + ", and hands the lock to " + ownerName(heir)
		handOver := func(w *lineWorld) {
			free(w)
			w.grant(heir, left)
			w.handed, w.kept[heir] = true, 0
			then(w)
		}
		do(handed, func(w *lineWorld) {
			handOver(w)
			w.told = message{heir, w.token, left}
		})
		if w.told != (message{}) { // of two messages, either may be the one that arrives
			do(handed+", of which P will not hear", handOver)
		}
	}
}

func (r *lineRules) tick(w *lineWorld) {
	if w.ttl > 0 && !w.q {
		if w.ttl--; w.ttl == 0 {
			w.holder, w.handed = nobody, false
		}
	}
	for x := range w.kept {
		w.kept[x] = max(w.kept[x]-1, 0)
	}
	if w.request != (request{}) {
		w.request.notAfter--
		if w.request.notAfter < 0 {
			w.request = request{}
		}
	}
	w.seat.valid = max(w.seat.valid-1, 0)
	for i := range w.p {
		g := &w.p[i]
		if g.stand != holding {
			continue
		}
		if g.valid--; g.valid == 0 {
			r.lose(w, i)
		}
	}
}

// lose ends a hold whose lease is over.
func (r *lineRules) lose(w *lineWorld, i int) {
	g := &w.p[i]
	if g.late {
		w.settle(g.owner, cleanUp{late: true, leaves: r.withNext(g.again)})
	}
	*g = goroutine{stand: gone}
	if w.line[0] == 0 && w.seat.owner != nobody {
		w.settle(w.seat.owner, cleanUp{})
		r.drop(w)
	}
}

// grant makes owner the holder, with the next token.
func (w *lineWorld) grant(owner, ttl int8) {
	w.token++
	w.holder, w.handed, w.ttl = owner, false, ttl
}

// awaited reports whether any owner has a place.
func (w *lineWorld) awaited() bool { return w.kept != [owners]int8{} }

// holds reports whether a goroutine of P holds the lock.
func (w *lineWorld) holds() bool {
	for _, g := range w.p {
		if g.stand == holding {
			return true
		}
	}
	return false
}

func (w *lineWorld) newSeat() int8 {
	if firstSeat+w.seats == owners {
		return nobody
	}
	w.seats++
	return firstSeat + w.seats - 1
}

func (w *lineWorld) settle(owner int8, more cleanUp) {
	was := w.settling[owner]
	w.settling[owner] = cleanUp{true, was.late || more.late, max(was.leaves, more.leaves)}
}

// head returns the head of the line, or -1 if the line is empty.
func (w *lineWorld) head() int { return int(w.line[0]) - 1 }

func (w *lineWorld) join(i int) {
	w.p[i].stand = queuing
	if w.line[0] == 0 {
		w.line[0] = int8(i) + 1
	} else {
		w.line[1] = int8(i) + 1
	}
}

func (w *lineWorld) leave(i int) {
	if w.line[0] == int8(i)+1 {
		w.line[0] = w.line[1]
	}
	w.line[1] = 0
}

func (w *lineWorld) begin(i int, token, valid int8) {
	g := &w.p[i]
	w.begun[g.owner] = true
	g.stand, g.token, g.valid, g.doubt, g.next = holding, token, valid, false, nobody
}

// entered says what is wrong with the token of a holder that was granted the lock since before.
func (w *lineWorld) entered(before *lineWorld) (wrong string) {
	token := int8(0)
	if w.q && !before.q {
		token = w.token
	}
	for i, g := range w.p {
		if g.stand == holding && before.p[i].stand != holding {
			token = g.token
		}
	}
	if token == 0 {
		return ""
	}
	if token <= w.best {
		wrong = "a token does not grow"
	}
	w.best = token
	return wrong
}

func (r *lineRules) wrong(w *lineWorld) string {
	in, busy := 0, w.request != (request{}) || w.settling != [owners]cleanUp{}
	if w.q {
		in++
	}
	for _, g := range w.p {
		if g.stand == holding {
			in++
		}
		busy = busy || g.stand != away && g.stand != gone
	}
	if in > 1 {
		return "two are inside"
	}
	if s := w.seat; s.known && s.valid > 0 && w.kept[s.owner] == 0 && w.holder != s.owner {
		return "the seat is lost"
	}
	if busy || r.ghosts {
		return ""
	}
	for x := ownOfA; x < owners; x++ {
		if w.kept[x] > 0 {
			return "a place is kept for nobody"
		}
		if w.holder == x && !w.begun[x] {
			return "the lock is kept for nobody"
		}
	}
	return ""
}

// alike drops everything on which nothing depends any more.
func (r *lineRules) alike(w lineWorld) lineWorld {
	if w.seat.owner == nobody && w.line[0] == 0 {
		w.told = message{}
	}
	return w
}

func ownerName(x int8) string {
	switch {
	case x < ownOfA:
		return "Q"
	case x < firstSeat:
		return string(rune('A' + x - ownOfA))
	}
	return fmt.Sprintf("seat %d", x-firstSeat+1)
}

func (r *lineRules) summary(w *lineWorld) string {
	var parts []string
	if w.holder != nobody {
		parts = append(parts, fmt.Sprintf("held by %s for %d", ownerName(w.holder), w.ttl))
	}
	for x, left := range w.kept {
		if left > 0 {
			parts = append(parts, fmt.Sprintf("a place of %s for %d", ownerName(int8(x)), left))
		}
	}
	if w.seat.owner != nobody {
		parts = append(parts, "P has "+ownerName(w.seat.owner))
	}
	if w.q {
		parts = append(parts, "Q is in")
	}
	for i, g := range w.p {
		if g.stand == holding {
			parts = append(parts, fmt.Sprintf("%c is in, token %d, for %d", 'A'+i, g.token, g.valid))
		}
	}
	return strings.Join(parts, "; ")
}
