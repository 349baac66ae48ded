// These scenes are about many keys and one shelf: how much segments bring, and why a lock is needed
// at all.

package scenes

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

func segments(ctx context.Context, s *stage) error {
	const workers, rounds, work = 16, 3, 10 * time.Millisecond
	s.note("16 workers in A and B, each with a customer of its own. Each has the lock %d times, for", rounds)
	s.note("%v of work: first one lock for all customers, then one of 16 by the customer's number.", work)

	// try returns how many times a second the work is done, and how many workers work at the
	// same time at most, when each worker i takes lock(i).
	try := func(lock func(i int) holdfast.Locker) (rate float64, most int, err error) {
		var inside crowd
		began := time.Now()
		err = everyone(workers, func(i int) (err error) {
			for range rounds {
				err = errors.Join(err, holdfast.Do(ctx, lock(i), func(ctx context.Context) error {
					inside.enter()
					defer inside.leave()
					return sleep(ctx, work)
				}))
			}
			return err
		})
		return workers * rounds / time.Since(began).Seconds(), inside.most, err
	}
	rate, most, err := try(func(i int) holdfast.Locker {
		_, client := s.process(i)
		return client.Mutex(s.name("customers"))
	})
	if err != nil {
		return err
	}
	s.says("A, B", "one lock:     %4.0f a second, %d at a time", rate, most)
	s.check("one lock lets one work at a time", most == 1)
	one := rate
	rate, most, err = try(func(i int) holdfast.Locker {
		_, client := s.process(i)
		return client.Striped(s.name("segments"), 16).At(i % 16)
	})
	if err != nil {
		return err
	}
	s.says("A, B", "16 segments:  %4.0f a second, %.1f times as many, up to %d at a time", rate, rate/one, most)
	s.check("16 segments let those of different customers work at the same time", most > 1)

	number, err := s.Redis.Get(ctx, "holdfast_stripes:"+s.name("segments")).Result()
	s.says("redis", "GET holdfast_stripes:%s   %s", s.name("segments"), number)
	s.check("the number of segments is written down for all processes", number == "16")
	return err
}

const units, buyers = 100, 130

func stock(ctx context.Context, s *stage) error {
	s.note("%d units, %d buyers at once. A sale looks how many are left, takes the money, and", units, buyers)
	s.note("writes one less.")
	lock := s.name("shelf:lock")
	sold, left, err := s.day(ctx, func(ctx context.Context, _ *holdfast.Client) (bool, error) {
		return s.sell(ctx)
	})
	if err != nil {
		return err
	}
	s.says("A, B", "without a lock %d are sold, and the shelf says that %d are left", sold, left)
	s.check("that is more than there were", sold > units)

	sold, left, err = s.day(ctx, func(ctx context.Context, client *holdfast.Client) (bool, error) {
		return holdfast.DoValue(ctx, client.Mutex(lock), s.sell)
	})
	if err != nil {
		return err
	}
	s.says("A, B", "with the lock %d are sold, and the shelf says that %d are left", sold, left)
	s.check("that is what there was", sold == units && left == 0)
	return nil
}

// day fills the shelf, lets all buyers in, and returns how many units were sold and are left.
func (s *stage) day(ctx context.Context, sale func(context.Context, *holdfast.Client) (bool, error)) (sold, left int, err error) {
	if err := s.Redis.Set(ctx, s.name("shelf"), units, time.Hour).Err(); err != nil {
		return 0, 0, err
	}
	sales := make(chan bool, buyers)
	err = everyone(buyers, func(i int) error {
		_, client := s.process(i)
		ok, err := sale(ctx, client)
		sales <- ok
		return err
	})
	for range buyers {
		if <-sales {
			sold++
		}
	}
	if err == nil {
		left, err = s.Redis.Get(ctx, s.name("shelf")).Int()
	}
	return sold, left, err
}

// sell sells one unit, if there is one. It is correct only if no other sale runs at the same
// time.
func (s *stage) sell(ctx context.Context) (sold bool, err error) {
	left, err := s.Redis.Get(ctx, s.name("shelf")).Int()
	if err != nil || left == 0 {
		return false, err
	}
	if err := sleep(ctx, time.Millisecond); err != nil {
		return false, err
	}
	return true, s.Redis.Set(ctx, s.name("shelf"), left-1, redis.KeepTTL).Err()
}
