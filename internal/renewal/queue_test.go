package renewal

import "testing"

// A queue is first in, first out. It reuses its buffer, and gives back what a burst has made of it.
func TestQueueKeepsOrderAndItsBuffer(t *testing.T) {
	var q queue[int]
	pushed, popped := 0, 0
	push := func() { q.push(pushed); pushed++ }
	pop := func() {
		if got := q.pop(); got != popped {
			t.Fatalf("popped %d, want %d", got, popped)
		}
		popped++
	}
	for range 10 {
		push()
	}
	for range 100_000 { // never empty
		push()
		pop()
	}
	if q.len() != 10 || cap(q.items) > 64 {
		t.Errorf("len = %d, want 10; the buffer has grown to %d", q.len(), cap(q.items))
	}
	for range 10 * keepCap {
		push()
	}
	for q.len() > 0 {
		pop()
	}
	if cap(q.items) != 0 {
		t.Errorf("an empty queue keeps %d tasks of a burst", cap(q.items))
	}
}
