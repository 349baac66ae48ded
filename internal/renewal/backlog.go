// The backlog of a stream: the renewals that wait, by the time at which their leases end.

package renewal

import (
	"container/heap"
	"time"
)

// pending is a task that waits to be sent.
type pending struct {
	task      Task
	by        time.Duration // its place, counted from the scheduler's epoch: what has the least is sent first
	try       time.Duration // see Task.Urgency
	postponed bool          // it has let others go first
}

// backlog gives out first the task whose by is least. A task that ends no sooner than the last one
// in the queue joins the queue, as most do. Any other goes to the heap, where each push and pop
// moves several tasks. The zero value is empty.
type backlog struct {
	inOrder queue[pending]
	others  pendingHeap
}

func (b *backlog) len() int { return b.inOrder.len() + len(b.others) }

func (b *backlog) push(p pending) {
	if b.inOrder.len() == 0 || p.by >= b.inOrder.last().by {
		b.inOrder.push(p)
		return
	}
	b.others = append(b.others, p)
	heap.Fix(&b.others, len(b.others)-1)
}

// pop returns the task with the least by. The backlog must not be empty.
func (b *backlog) pop() pending {
	if len(b.others) == 0 || b.inOrder.len() > 0 && b.inOrder.first().by <= b.others[0].by {
		return b.inOrder.pop()
	}
	return b.others.pop()
}

// pendingHeap is a heap by the field by.
type pendingHeap []pending

func (h pendingHeap) Len() int           { return len(h) }
func (h pendingHeap) Less(i, j int) bool { return h[i].by < h[j].by }
func (h pendingHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop complete heap.Interface. push and pop do their work without an any, which would have
// to be allocated for each task.
func (h *pendingHeap) Push(p any) { *h = append(*h, p.(pending)) }

func (h *pendingHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// pop returns the task with the least by.
func (h *pendingHeap) pop() pending {
	tasks := *h
	last := len(tasks) - 1
	first := tasks[0]
	tasks[0] = tasks[last]
	tasks[last] = pending{}
	if *h = tasks[:last]; last == 0 {
		if cap(tasks) > keepCap {
			*h = nil
		}
		return first
	}
	heap.Fix(h, 0)
	return first
}
