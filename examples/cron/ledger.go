// In the ledger the replicas record what they have sent: in a real program it is a row of a table.

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// ledger records the ticks that were sent and missed, and the token of the last sender.
type ledger struct {
	mu      sync.Mutex // guards the fields below
	out     io.Writer
	sent    []int
	missed  []int
	token   int64
	refused int  // results that came too late
	stopped bool // one replica has been stopped
}

// last returns the last tick that was sent, 0 if there is none.
func (l *ledger) last() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastLocked()
}

func (l *ledger) lastLocked() int {
	if len(l.sent) == 0 {
		return 0
	}
	return l.sent[len(l.sent)-1]
}

// add records that the tick was sent, unless a sender with a greater token has recorded something
// before:
//
//	UPDATE report SET tick = $1, token = $2 WHERE token < $2
func (l *ledger) add(who string, tick int, token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token <= l.token {
		l.refused++
		fmt.Fprintf(l.out, "tick %d: %s comes too late with it, and is refused\n", tick, who)
		return
	}
	for missed := l.lastLocked() + 1; missed < tick; missed++ {
		l.missed = append(l.missed, missed)
		fmt.Fprintf(l.out, "tick %d: missed\n", missed)
	}
	l.sent, l.token = append(l.sent, tick), token
	fmt.Fprintf(l.out, "tick %d: sent by %s, token %d\n", tick, who, token)
}

// firstToStop reports whether the caller is the replica that must stop.
func (l *ledger) firstToStop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.stopped
	l.stopped = true
	return first
}

// enough reports whether all of the reports have been sent.
func (l *ledger) enough() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sent) >= reports
}

// check returns an error unless every tick was sent once, or is known to have been missed.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := slices.Concat(l.sent, l.missed)
	slices.Sort(told)
	for i, tick := range told {
		if tick != i+1 {
			return fmt.Errorf("of tick %d it is not known whether it was sent once: %v", i+1, told)
		}
	}
	if l.refused == 0 || len(l.missed) == 0 {
		return errors.New("nobody was stopped")
	}
	fmt.Fprintf(l.out, "%d ticks sent once, %d missed, %d refused for coming late\n", len(l.sent), len(l.missed), l.refused)
	return nil
}
