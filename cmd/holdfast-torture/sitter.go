// Sitters and pokers: lanes on objects with little contention. A sitter has an object for
// itself, sometimes for several leases at a stretch. Only a renewal that did not come through,
// or another's release, can end such a hold. Pokers try to take the object too, and give up at
// once: whatever they leave behind meets the sitter.

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// sitBeat is the pause between two claims of a sitter's hold.
	sitBeat = 100 * time.Millisecond
	// pokeEvery is the longest pause between two pokes of a lane.
	pokeEvery = 200 * time.Millisecond
)

// seat returns the object of the sitter of a kind, in the process at that place of the crew.
func seat(kind, place string) string { return kind + "-of" + place }

// sat reports whether the object is a sitter's.
func sat(object string) bool { return strings.Contains(object, "-of") }

// runSitter holds the lane's own object, again and again, until ctx ends.
func (l *lane) runSitter(ctx context.Context) error {
	object := seat(l.kind, l.place)
	for n := 0; ctx.Err() == nil; n++ {
		length := time.Duration(l.rand.IntN(5)) * time.Millisecond
		if n%20 == 0 {
			length = l.ways.lease + time.Duration(l.rand.Int64N(int64(l.ways.lease)))
		}
		if err := l.sit(ctx, object, length); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}

// sit is one attempt to hold the object and, if it is granted, the hold.
func (l *lane) sit(ctx context.Context, object string, length time.Duration) error {
	if err := l.prepared(ctx, object); err != nil {
		return l.missed(ctx, object, err)
	}
	h, err := l.lock(ctx, object, l.ways.take(object, true, l.rand), 30*time.Second, false)
	if h == nil {
		return err
	}
	return h.through(length, sitBeat)
}

// through runs a hold of that length, from its grant to its end.
func (h *holdUnderWay) through(length, beat time.Duration) error {
	_, entered, err := h.enter()
	if err == nil && entered {
		err = h.idle(length, beat)
	}
	if err != nil {
		return err
	}
	return h.finish(entered)
}

// runPoker asks for the objects of sitters, until ctx ends.
func (l *lane) runPoker(ctx context.Context, places int) error {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(l.rand.Int64N(int64(pokeEvery))))
		object := seat(l.kind, fmt.Sprint(l.rand.IntN(places)))
		if err := l.poke(ctx, object); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}

// poke is one attempt that is given up soon, and the hold if it is granted all the same.
func (l *lane) poke(ctx context.Context, object string) error {
	if err := l.prepared(ctx, object); err != nil {
		return l.missed(ctx, object, err)
	}
	patience := time.Duration(l.rand.IntN(5_000)) * time.Microsecond
	h, err := l.lock(ctx, object, l.ways.take(object, l.ways.draw(l.rand), l.rand), patience, l.rand.IntN(2) == 0)
	if h == nil {
		return err
	}
	return h.through(0, sitBeat)
}
