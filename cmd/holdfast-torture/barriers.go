// Barriers: lanes are parties, which come, wait with others until their generation trips or breaks, and
// now and then leave or reset it.

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const (
	// parties is how many a barrier is for: so few that those that wait for different barriers never are
	// all lanes.
	parties = 3
	// pauseAfter is the longest pause of a lane between two generations.
	pauseAfter = 5 * time.Millisecond
)

// runBarrier is a party of one generation after the other until ctx ends.
func (l *lane) runBarrier(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.await(ctx); err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
		time.Sleep(time.Duration(l.rand.Int64N(int64(pauseAfter))))
	}
	return nil
}

// await is one call of Await. The referee hears before it that the lane may arrive from now on.
func (l *lane) await(ctx context.Context) error {
	object := fmt.Sprintf("%s-%d", l.kind, l.rand.IntN(l.names))
	b := l.ways.clients[0].Barrier(object, parties, barrier.Lease(l.ways.lease))
	if l.rand.IntN(100) == 0 {
		if _, err := b.Reset(ctx); err != nil {
			return l.missed(ctx, object, err)
		}
	}
	patience := l.patience()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := stamp(time.Now())
	if err := l.tell(note{Topic: arriving, Lane: l.name, Object: object, Call: now, Deadline: now + int64(patience)}); err != nil {
		return err
	}
	trip, err := b.Await(waiting)
	return l.tell(note{
		Topic: awaited, At: stamp(time.Now()),
		Token: trip.Generation, Value: int64(trip.Arrival), Ending: outcomeOf(err),
	})
}

// How a party's wait ends, besides the classes of errors.
const (
	tripped = "tripped"
	broken  = "broken"
)

// outcomeOf returns how a party's wait ended, by Await's error.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return tripped
	case errors.Is(err, holdfast.ErrUnknown):
		return unknown
	case errors.Is(err, holdfast.ErrBroken):
		return broken
	}
	return classOf(err)
}

// arrives records that a lane may arrive.
func (o *object) arrives(lane string, n note) *party {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &party{lane: lane, call: n.Call, deadline: n.Deadline}
	o.parties = append(o.parties, p)
	return p
}

// awaited records what a party got.
func (o *object) awaited(p *party, n note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.at, p.generation, p.arrival, p.ending = n.At, n.Token, int(n.Value), n.Ending
}

// placesLeft fails the test if barriers still have places of parties, when no lane waits. Leaving goes on in
// the background, and the places of killed contenders have to run out.
func (s *soak) placesLeft(rdb redis.UniversalClient) {
	if !slices.Contains(s.config.Kinds, "barrier") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for n := range s.config.names() {
		at, err := keys.Space("").ForBarrier(fmt.Sprintf("barrier-%d", n))
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		redistest.Eventually(s.t, 10*time.Second, "no party has a place", func() error {
			live, err := rdb.ZRangeByScore(ctx, at.Places, &redis.ZRangeBy{Min: fmt.Sprint(time.Now().UnixMilli()), Max: "+inf"}).Result()
			live = slices.DeleteFunc(live, func(member string) bool { return strings.HasPrefix(member, "left:") })
			if err == nil && len(live) > 0 {
				err = fmt.Errorf("%s has %d", at.Places, len(live))
			}
			return err
		})
	}
}
