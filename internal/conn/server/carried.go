// Bundles on a wire: which requests of a pipeline go out together, and which answer each gets.

package server

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// carried is a bundle in a pipeline: several requests that are sent as one command.
type carried struct {
	members []*request // in the order in which they came
	first   []*request // the first member of each part; nil if the part has none
	letters []byte     // the part of each member, for the script
	cmd     command
	numbers *redis.IntSliceCmd
}

// bundling is what a wire needs for bundles. It is used again for each pipeline.
type bundling struct {
	all   []*carried
	used  int            // how many of all are in the present pipeline
	open  []*carried     // those that take more members
	known []*call.Bundle // those whose script the server has
}

// apartFor is how long a node sends no bundles after a server has refused one: it would refuse the
// next bundle too, whose requests would be sent again one by one.
const apartFor = time.Second

// apart is the time until which a node sends no bundles, by the wall clock in nanoseconds.
type apart struct{ until atomic.Int64 }

func (a *apart) begin(now time.Time)   { a.until.Store(now.Add(apartFor).UnixNano()) }
func (a *apart) at(now time.Time) bool { return now.UnixNano() < a.until.Load() }

// errFailed is the error of a request whose script failed in a bundle. It is the server's answer, as an
// error reply is: nothing was done, and nothing is in doubt.
const errFailed answerOfOne = "it failed beside others"

// answerOfOne is a server's error for one request of a bundle.
type answerOfOne string

func (a answerOfOne) Error() string { return string(a) }

// RedisError makes fault.IsReply know it.
func (a answerOfOne) RedisError() {}

// mayJoin reports whether the request may be sent in a bundle. A request goes alone if it is sent
// again, if it is not sent in the usual form, or if it waits for replicas.
func (r *request) mayJoin() bool {
	c := r.call
	return r.Manner == Manner{} && r.message == nil && c.Script.InBundle() != nil && c.Attempts == 0 && c.Replicas == 0
}

// gather puts the requests of a pipeline that may go out together into bundles. The requests of one
// bundle have the same not-after, keys in one slot, and the same values for those arguments that
// their parts share.
func (b *bundling) gather(batch []*request) {
	b.open = b.open[:0]
	for _, r := range batch {
		if r.mayJoin() {
			b.add(r)
		}
	}
	for _, c := range b.all[:b.used] {
		if len(c.members) < call.MinBundle {
			for _, r := range c.members {
				r.in = nil
			}
			c.clear()
		}
	}
}

// add puts a request into the bundle that it suits, or a new one.
func (b *bundling) add(r *request) {
	at := slices.IndexFunc(b.open, func(c *carried) bool { return c.suits(r) })
	if at < 0 {
		at = len(b.open)
		b.open = append(b.open, b.next())
	}
	c := b.open[at]
	c.join(r)
	if len(c.members) == r.call.Script.InBundle().Most {
		b.open = slices.Delete(b.open, at, at+1)
	}
}

// next returns a bundle without members.
func (b *bundling) next() *carried {
	if b.used == len(b.all) {
		b.all = append(b.all, &carried{numbers: redis.NewIntSliceCmd(detached)})
	}
	b.used++
	return b.all[b.used-1]
}

// suits reports whether the request may join the bundle.
func (c *carried) suits(r *request) bool {
	one, script := c.members[0], r.call.Script
	if one.call.Script.InBundle() != script.InBundle() || one.slot != r.slot || one.notAfter != r.notAfter {
		return false
	}
	other := c.first[script.AsPart()]
	if other == nil {
		return true
	}
	for _, n := range script.InBundle().Parts[script.AsPart()].Common {
		if !same(other.call.Args[n-2], r.call.Args[n-2]) {
			return false
		}
	}
	return true
}

func same(a, b any) bool {
	switch a := a.(type) {
	case *string:
		b, ok := b.(*string)
		return ok && *a == *b
	case *int64:
		b, ok := b.(*int64)
		return ok && *a == *b
	default:
		return a == b
	}
}

func (c *carried) join(r *request) {
	script := r.call.Script
	if len(c.members) == 0 {
		c.first = append(c.first[:0], make([]*request, len(script.InBundle().Parts))...)
	}
	if c.first[script.AsPart()] == nil {
		c.first[script.AsPart()] = r
	}
	c.members = append(c.members, r)
	c.letters = append(c.letters, 'a'+byte(script.AsPart()))
	r.in = c
}

// compose builds the command. full says to send the source, because the server may not have the
// script.
func (c *carried) compose(full bool) {
	b := c.members[0].call.Script.InBundle()
	args := append(b.Script.Command(c.cmd.args[:0], full), 0)
	for _, r := range c.members {
		for i := range r.call.Keys {
			args = append(args, &r.call.Keys[i])
		}
	}
	args[2] = len(args) - 3
	args = append(args, &c.members[0].notAfter, string(c.letters))
	for i, r := range c.first {
		for _, n := range b.Parts[i].Common {
			if r == nil {
				args = append(args, "")
			} else {
				args = append(args, r.call.Args[n-2])
			}
		}
	}
	for _, r := range c.members {
		part := &b.Parts[r.call.Script.AsPart()]
		for i, arg := range r.call.Args {
			if !part.Shares(i + 2) {
				args = append(args, arg)
			}
		}
	}
	c.cmd.args, c.cmd.Cmder = args, c.numbers
	c.numbers.SetErr(nil)
	c.numbers.SetVal(nil)
}

func (c *carried) clear() {
	clear(c.members)
	clear(c.first)
	clear(c.cmd.args)
	c.members, c.letters = c.members[:0], c.letters[:0]
}

// answer gives each member its part of the reply: see bundleend.lua.
func (c *carried) answer(clock *clock, received time.Time) {
	numbers, err := c.numbers.Val(), c.numbers.Err()
	if err == nil && !c.understands(numbers) {
		err = fault.ErrGarbled
	}
	if err != nil {
		err = c.failure(err)
		for _, r := range c.members {
			r.err = err
		}
		return
	}
	clock.observe(numbers[1], received)
	time, others := numbers[1], numbers[2:]
	for i, r := range c.members {
		if len(others) == 0 || others[0] != int64(i+1) {
			r.answerUsually(time)
			continue
		}
		r.answerApart(others[1:call.BundleWidth], time)
		others = others[call.BundleWidth:]
	}
}

// answerUsually records the usual answer of a script in a bundle that ran at that time.
func (r *request) answerUsually(time int64) {
	r.err, r.brief = nil, time
	if r.call.Script.Is(call.Timeless) {
		r.brief = call.Done
	}
}

// answerApart records an answer that is not the usual one: the status, and two numbers more.
func (r *request) answerApart(own []int64, time int64) {
	if r.err = nil; own[0] == failed {
		r.err = fault.NotAlone{Err: errFailed}
		return
	}
	if r.call.Script.Is(call.Timeless) {
		time = 0
	}
	r.numbers.SetVal([]int64{own[0], time, own[1], own[2]})
}

// failed is the status of a call that failed in a bundle.
const failed = -3

// failure returns the error of each member of a bundle that failed.
func (c *carried) failure(err error) error {
	switch {
	case errors.Is(err, fault.ErrSpent):
		return fault.Unsent{Err: err}
	case fault.IsReply(err):
		return fault.NotAlone{Err: err}
	default:
		return err
	}
}

// understands reports whether the numbers are a bundle's answer: see bundleend.lua. Only a script that is Brief
// has a usual answer.
func (c *carried) understands(numbers []int64) bool {
	if len(numbers) < 2 || (len(numbers)-2)%call.BundleWidth != 0 || numbers[0] != call.Done || numbers[1] <= 0 {
		return false
	}
	others := numbers[2:]
	for i, r := range c.members {
		if len(others) > 0 && others[0] == int64(i+1) {
			others = others[call.BundleWidth:]
		} else if !r.call.Script.Brief() {
			return false
		}
	}
	return len(others) == 0
}

// compose builds the commands of a pipeline. The callers cannot withdraw their requests any more.
func (w *wire) compose(batch []*request, now time.Time) {
	b := &w.bundling
	if len(batch) >= call.MinBundle && !w.node.apart.at(now) {
		b.gather(batch)
	}
	for _, c := range b.all[:b.used] {
		if len(c.members) > 0 {
			known := c.members[0].call.Script.InBundle()
			c.compose(!slices.Contains(b.known, known))
			b.learn(known)
		}
	}
	for _, r := range batch {
		if r.in == nil {
			r.compose()
		}
		r.state.Store(sent)
	}
}

// learn records that the server will have the bundle's script.
func (b *bundling) learn(known *call.Bundle) {
	if !slices.Contains(b.known, known) {
		b.known = append(b.known, known)
	}
}

// answerBundles gives the members of the bundles of a pipeline their answers.
func (w *wire) answerBundles(received time.Time) {
	b := &w.bundling
	for _, c := range b.all[:b.used] {
		if len(c.members) == 0 {
			continue
		}
		c.answer(&w.clock, received)
		switch err := c.numbers.Err(); {
		case err == nil || !fault.IsReply(err):
		case fault.HasCode(err, "NOSCRIPT "):
			b.known = b.known[:0]
		default:
			w.node.apart.begin(received)
		}
		c.clear()
	}
	b.used = 0
}
