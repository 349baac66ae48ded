package renewal

import "testing"

func TestQueueKeepsOrderAndItsBuffer(t *testing.T) {
	tasks := make([]fakeTask, 64)
	var q queue[Task]
	pushed, popped := 0, 0
	push := func() { q.push(&tasks[pushed%len(tasks)]); pushed++ }
	pop := func() {
		if got := q.pop(); got != &tasks[popped%len(tasks)] {
			t.Fatalf("pop %d is out of order", popped)
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
	if q.len() != 10 {
		t.Errorf("len = %d, want 10", q.len())
	}
	if cap(q.items) > 64 {
		t.Errorf("ten tasks at a time grew the buffer to %d", cap(q.items))
	}
	for q.len() > 0 {
		pop()
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
