// A first-in-first-out queue that reuses its buffer.

package renewal

// keepCap is the largest buffer, in items, that an empty queue keeps. A larger buffer, grown in
// a burst, is given back.
const keepCap = 1024

// queue is first in, first out. The zero value is empty.
type queue[T any] struct {
	items []T
	head  int // the index of the next item to pop
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// first and last return an end of the queue, which must not be empty.
func (q *queue[T]) first() *T { return &q.items[q.head] }
func (q *queue[T]) last() *T  { return &q.items[len(q.items)-1] }

func (q *queue[T]) push(item T) {
	// A queue that never runs empty would grow for ever, so the room before its head is used
	// again once it is more than half of the buffer.
	if q.head > len(q.items)/2 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

// pop returns the item that was pushed first. The queue must not be empty.
func (q *queue[T]) pop() T {
	var none T
	item := q.items[q.head]
	q.items[q.head] = none
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > keepCap {
			q.items = nil
		}
	}
	return item
}
