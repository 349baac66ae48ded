// The backlog of a stream: the renewals that wait, by the time at which their leases end.

package renewal

import (
	"container/heap"
	"time"
)

// pending is a task that waits to be sent.
type pending struct {
	task      Task
	by        time.Time     // its place: what has the least is sent first
	try       time.Duration // see Task.Urgency
	postponed bool          // it has let others go first
}

// backlog is a heap. The zero value is empty.
type backlog []pending

func (b backlog) Len() int           { return len(b) }
func (b backlog) Less(i, j int) bool { return b[i].by.Before(b[j].by) }
func (b backlog) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

// Push and Pop complete heap.Interface. push and pop do their work without an any, which would have
// to be allocated for each task.
func (b *backlog) Push(p any) { *b = append(*b, p.(pending)) }

func (b *backlog) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

func (b *backlog) push(p pending) {
	*b = append(*b, p)
	heap.Fix(b, len(*b)-1)
}

// pop returns the task with the least by. The backlog must not be empty.
func (b *backlog) pop() pending {
	tasks := *b
	last := len(tasks) - 1
	first := tasks[0]
	tasks[0] = tasks[last]
	tasks[last] = pending{}
	if *b = tasks[:last]; last == 0 {
		if cap(tasks) > keepCap {
			*b = nil
		}
		return first
	}
	heap.Fix(b, 0)
	return first
}
