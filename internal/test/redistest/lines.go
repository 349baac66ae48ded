// A queue keeps the lines that one side has sent and the other side has not read yet.

package redistest

import (
	"context"
	"io"
	"sync"
)

// lineQueue is an unbounded queue, so that a process never blocks when it sends a line.
type lineQueue struct {
	mu      sync.Mutex
	lines   []string
	ended   bool
	changed chan struct{} // closed and replaced at every change
}

func newLineQueue() *lineQueue { return &lineQueue{changed: make(chan struct{})} }

func (q *lineQueue) add(line string) {
	q.change(func() { q.lines = append(q.lines, line) })
}

func (q *lineQueue) end() {
	q.change(func() { q.ended = true })
}

func (q *lineQueue) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	close(q.changed)
	q.changed = make(chan struct{})
}

// next waits for a line; it returns io.EOF when no more will come.
func (q *lineQueue) next(ctx context.Context) (string, error) {
	for {
		line, changed, err := q.take()
		if changed == nil {
			return line, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// take returns a line or the end; if there is neither, it returns the channel to wait for.
func (q *lineQueue) take() (string, <-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) > 0 {
		line := q.lines[0]
		q.lines = q.lines[1:]
		return line, nil, nil
	}
	if q.ended {
		return "", nil, io.EOF
	}
	return "", q.changed, nil
}
