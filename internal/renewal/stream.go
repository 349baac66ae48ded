// A stream: it carries renewals to one server, batch after batch.

package renewal

import (
	"context"
	"time"
)

const (
	// MaxBatch is the largest number of tasks that one Send is given.
	MaxBatch = 2000

	// usualBatch is the largest number of tasks that one Send is given while the server keeps up.
	// Other clients of the server find gaps between such batches.
	usualBatch = 100

	// mostTries is how many of its tries a batch may take. A lease has no more left when its renewal is due.
	mostTries = 4

	// maxSenders bounds how many batches of one stream are on their way at a time.
	maxSenders = 4
)

// destination says what the tasks of a stream have in common: their server, and the length of their
// tries to within a factor of two. So a server that does not answer holds up a short lease for no
// longer than such a lease can bear.
type destination struct {
	addr string
	size int // how many bits the try has, in nanoseconds
}

// stream holds the tasks that wait to be sent to one destination. It is guarded by the outbox's
// mutex.
type stream struct {
	to      destination
	backlog backlog
	senders int           // the goroutines that send
	overdue int           // how many of them have been at it for longer than a try
	took    time.Duration // how long the last Send took
}

// drain sends tasks of the stream, batch after batch, until the other senders of the stream need no
// help, or no task is left.
func (s *stream) drain(o *outbox) {
	buffer, _ := o.batches.Get().(*[]Task)
	if buffer == nil {
		buffer = new([]Task)
	}
	defer o.batches.Put(buffer)
	for {
		batch, b, waiting := s.take(o, *buffer)
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		relieved := s.relieve(o, b.try)
		o.send(s.to.addr, batch, b, waiting)
		relieved()
		took := time.Since(began)
		clear(batch)
		*buffer = batch[:0]

		o.mu.Lock()
		s.took = took
		o.mu.Unlock()
	}
}

// bounds are those of a batch: the shortest try in it, and when its last lease ends, counted from the
// scheduler's epoch.
type bounds struct {
	try time.Duration
	by  time.Duration
}

// relieve makes another goroutine send what waits once the caller's batch takes longer than a try.
// The caller calls the function that it returns when the batch was answered.
func (s *stream) relieve(o *outbox, try time.Duration) (answered func()) {
	late, done := false, false // guarded by the outbox's mutex
	timer := time.AfterFunc(try, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if late = !done; late {
			s.overdue++
			s.staff(o)
		}
	})
	return func() {
		if timer.Stop() {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if done = true; late {
			s.overdue--
		}
	}
}

// take appends the next batch to an empty buffer. It returns the batch, its bounds, and how many tasks
// are left. If the batch is empty, the caller is a sender no more, and must not use the stream again.
// A stream without senders is given up, and the next task for its destination begins another.
func (s *stream) take(o *outbox, buffer []Task) (batch []Task, b bounds, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, senders := s.pace()
	if s.senders <= senders {
		batch, b = s.next(buffer, size, time.Since(o.epoch))
	}
	if len(batch) == 0 {
		if s.senders--; s.senders == 0 {
			o.end(s)
		}
		return nil, bounds{}, 0
	}
	s.staff(o)
	return batch, b, s.backlog.len()
}

// staff starts a goroutine that sends, if the stream needs one more. The caller holds the outbox's mutex.
func (s *stream) staff(o *outbox) {
	if _, senders := s.pace(); s.senders < senders && s.backlog.len() > 0 {
		s.senders++
		o.wg.Go(func() { s.drain(o) })
	}
}

// next takes up to size tasks from the backlog, and returns the bounds of those. What ends first is sent
// first. But a task whose lease ends too soon for a Send that takes as long as the last one goes behind
// those that can still be kept.
func (s *stream) next(batch []Task, size int, now time.Duration) (_ []Task, b bounds) {
	for s.backlog.len() > 0 && len(batch) < size {
		p := s.backlog.pop()
		if !p.postponed && s.backlog.len() >= size && p.by-now < s.took {
			p.postponed, p.by = true, p.by+p.try
			s.backlog.push(p)
			continue
		}
		if b.try == 0 || p.try < b.try {
			b.try = p.try
		}
		b.by = max(b.by, p.by)
		batch = append(batch, p.task)
	}
	return batch, b
}

// pace returns how many tasks the next Send is given, and how many senders the stream needs:
// so many that the whole backlog is sent within a quarter of a try, if each Send takes as long as the
// last. A server that is far away or busy answers few batches a second, so those must be larger.
func (s *stream) pace() (size, senders int) {
	quarter := time.Duration(1) << (s.to.size - 1) / 4
	needed := int(float64(s.backlog.len()) * float64(s.took) / float64(quarter))
	senders = min(1+needed/MaxBatch, maxSenders)
	return min(max(needed/senders, usualBatch), MaxBatch), min(senders+s.overdue, 2*maxSenders)
}

// send sends the batch, or fails it if the scheduler is closed.
func (o *outbox) send(addr string, batch []Task, b bounds, waiting int) {
	if o.ctx.Err() != nil {
		for _, t := range batch {
			o.sender.Fail(t, context.Cause(o.ctx))
		}
		return
	}
	left := b.by - time.Since(o.epoch)
	ctx, cancel := context.WithTimeout(o.ctx, max(b.try, min(left, mostTries*b.try)))
	defer cancel()
	o.sender.Send(ctx, addr, batch, b.try, waiting)
}
