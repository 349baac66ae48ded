// A first-in-first-out queue of tasks that reuses its buffer.

package renewal

// keepCap is the largest buffer, in tasks, that an empty queue keeps. A larger buffer, grown in
// a burst, is given back.
const keepCap = 1024

// queue is first in, first out. The zero value is empty.
type queue struct {
	tasks []Task
	head  int // the index of the next task to pop
}

func (q *queue) len() int { return len(q.tasks) - q.head }

func (q *queue) push(tasks ...Task) {
	// A queue that never runs empty would grow for ever, so the room before its head is used
	// again once it is more than half of the buffer.
	if q.head > len(q.tasks)/2 && len(q.tasks)+len(tasks) > cap(q.tasks) {
		n := copy(q.tasks, q.tasks[q.head:])
		clear(q.tasks[n:])
		q.tasks, q.head = q.tasks[:n], 0
	}
	q.tasks = append(q.tasks, tasks...)
}

// pop returns the task that was pushed first. The queue must not be empty.
func (q *queue) pop() Task {
	t := q.tasks[q.head]
	q.tasks[q.head] = nil
	q.head++
	if q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
		if cap(q.tasks) > keepCap {
			q.tasks = nil
		}
	}
	return t
}
