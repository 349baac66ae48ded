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
		batch, try, waiting := s.take(o, *buffer)
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		o.send(s.to.addr, batch, try, waiting)
		took := time.Since(began)
		clear(batch)
		*buffer = batch[:0]

		o.mu.Lock()
		s.took = took
		o.mu.Unlock()
	}
}

// take appends the next batch to an empty buffer. It returns the batch, the shortest try in it, and
// how many tasks are left. If the batch is empty, the caller is a sender no more, and must not use
// the stream again. A stream without senders is given up, and the next task for its destination
// begins another.
func (s *stream) take(o *outbox, buffer []Task) (batch []Task, try time.Duration, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, senders := s.pace()
	if s.senders > senders {
		s.senders--
		return nil, 0, 0
	}
	batch, try = s.next(buffer, size, time.Since(o.epoch))
	if len(batch) == 0 {
		o.end(s)
		return nil, 0, 0
	}
	if s.senders < senders {
		s.senders++
		o.wg.Go(func() { s.drain(o) })
	}
	return batch, try, s.backlog.len()
}

// next takes up to size tasks from the backlog, and returns the shortest try among them. What ends
// first is sent first. But a task that ends before a Send like the last one is answered lets those
// go first that can still be kept.
func (s *stream) next(batch []Task, size int, now time.Duration) (_ []Task, try time.Duration) {
	for s.backlog.len() > 0 && len(batch) < size {
		p := s.backlog.pop()
		if !p.postponed && s.backlog.len() >= size && p.by-now < s.took {
			p.postponed, p.by = true, p.by+p.try
			s.backlog.push(p)
			continue
		}
		if try == 0 || p.try < try {
			try = p.try
		}
		batch = append(batch, p.task)
	}
	return batch, try
}

// pace returns how many tasks the next Send is given, and how many senders the stream needs, for a
// rate at which the whole backlog would be sent within a quarter of a try, if each Send takes as
// long as the last. A server that is far away, or that others keep busy, answers few batches a
// second, so those must be larger.
func (s *stream) pace() (size, senders int) {
	quarter := time.Duration(1) << (s.to.size - 1) / 4
	needed := int(float64(s.backlog.len()) * float64(s.took) / float64(quarter))
	senders = min(1+needed/MaxBatch, maxSenders)
	return min(max(needed/senders, usualBatch), MaxBatch), senders
}

// send has the batch sent, or failed if the scheduler is closed.
func (o *outbox) send(addr string, batch []Task, try time.Duration, waiting int) {
	if o.ctx.Err() != nil {
		for _, t := range batch {
			o.sender.Fail(t, context.Cause(o.ctx))
		}
		return
	}
	ctx, cancel := context.WithTimeout(o.ctx, try)
	defer cancel()
	o.sender.Send(ctx, addr, batch, waiting)
}
