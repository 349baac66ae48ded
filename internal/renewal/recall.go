// Recalls: tasks are called before their time, because the machine may have slept, or because their
// server may have forgotten them.

package renewal

import "time"

// doubts are what Doubt was called with since the last recall.
type doubts struct {
	pending concern
	again   int64 // the tick before which there is no recall for them
}

// concern is whom a recall concerns, by what it is about.
type concern map[any]func(key string) bool

// mostConcerns is how many things a recall may be about. With more it concerns every task, because finding
// out which ones would cost more than asking all.
const mostConcerns = 64

// everyone is about every task.
func everyone(string) bool { return true }

// add makes the recall concern one more thing.
func (c *concern) add(about any, concerns func(key string) bool) {
	switch {
	case *c == nil:
		*c = concern{about: concerns}
	case len(*c) < mostConcerns:
		(*c)[about] = concerns
	default:
		*c = concern{about: everyone}
	}
}

// doubtEvery is the least time between two recalls for doubts.
const doubtEvery = time.Second

// Doubt makes the scheduler call Suspect on each task for whose key concerns returns true: within
// clockWatch, or within doubtEvery if there was such a call before. Two calls about the same thing count
// as one. concerns is called without any mutex of this package held.
func (s *Scheduler) Doubt(about any, concerns func(key string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.wheel != nil {
		s.doubts.pending.add(about, concerns)
	}
}

// recall makes every task due at once if the machine may have slept, or if it is time for the doubts.
// The scheduler then calls Suspect on each of those that it concerns, and puts the others back.
func (s *Scheduler) recall(now time.Time, slept bool) {
	tick := s.tick(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	doubted := len(s.doubts.pending) > 0 && tick >= s.doubts.again
	if !slept && !doubted {
		return
	}
	if s.wheel.called.head == nil { // else some of the last recall are still to be called
		s.concerned = nil
	}
	if slept {
		s.concerned.add(nil, everyone)
	}
	if doubted {
		for about, concerns := range s.doubts.pending {
			s.concerned.add(about, concerns)
		}
		s.doubts = doubts{again: tick + int64(doubtEvery/Resolution)}
	}
	s.wheel.Recall()
}

// concerns reports whether the last recall is about the task.
func (s *Scheduler) concerns(t Task) bool {
	key := t.Key()
	for _, concerns := range s.concerned {
		if concerns(key) {
			return true
		}
	}
	return false
}

// putBack puts t back where it was before the last recall, unless t was removed or scheduled anew.
func (s *Scheduler) putBack(t Task) {
	e := t.Entry()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.firing {
		s.wheel.Set(e, e.tick)
	}
	e.firing = false
}
