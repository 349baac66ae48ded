// The stage is what a scene works with: the two processes, a view into Redis, a way to print,
// and the checks.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

// scene is one part of the tour.
type scene struct {
	title string
	run   func(ctx context.Context, s *stage) error
}

// stage is one scene while it is played.
type stage struct {
	A, B  *holdfast.Client // these stand for two processes
	Redis *redis.Client    // to look at what is stored

	alone  bool   // the server is embedded: no other program uses it
	prefix string // the prefix of names that no other tour on the server uses
	shared string // the prefix of names that every tour on the server uses

	options []holdfast.Option // of every Client

	mu     sync.Mutex // guards the fields below: A and B speak at the same time
	out    io.Writer
	began  time.Time
	failed []string
}

func (t *theatre) stage(out io.Writer) *stage {
	return &stage{
		A: t.a, B: t.b, Redis: t.rdb,
		alone: len(t.embedded) > 0, prefix: t.prefix, shared: t.shared,
		options: t.options,
		out:     out, began: time.Now(),
	}
}

// play plays the scene, and returns the claims that did not hold.
func (s *stage) play(ctx context.Context, sc scene) []string {
	bounded, cancel := context.WithTimeout(ctx, time.Minute) // no scene takes that long
	defer cancel()
	if err := sc.run(bounded, s); err != nil && ctx.Err() == nil {
		s.check("the scene reaches its end: "+err.Error(), false)
	}
	return s.failed
}

// name makes a name in Redis that no other tour on the server uses.
func (s *stage) name(name string) string { return s.prefix + name }

// note prints an explanation.
func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	printf(s.out, "   "+format+"\n", args...)
}

// says prints what who does, and at what time.
func (s *stage) says(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // joined errors
	printf(s.out, "   %5d ms  %-5s  %s\n", time.Since(s.began).Milliseconds(), who, said)
}

// check prints a claim and whether it held.
func (s *stage) check(claim string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verdict := "ok  "
	if !held {
		verdict = "FAIL"
		s.failed = append(s.failed, claim)
	}
	printf(s.out, "   %s  %s\n", verdict, claim)
}

// state is what Redis stores at a lock's name.
type state struct {
	holders map[string]string // holder: count; in a read/write lock also the mode
	ttl     time.Duration     // negative if there is no key
}

// look asks Redis for the state of the lock.
func (s *stage) look(ctx context.Context, name string) (state, error) {
	holders, err := s.Redis.HGetAll(ctx, name).Result()
	if err != nil {
		return state{}, err
	}
	ttl, err := s.Redis.PTTL(ctx, name).Result()
	return state{holders, ttl}, err
}

// show calls look, and prints the state.
func (s *stage) show(ctx context.Context, name string) (state, error) {
	now, err := s.look(ctx, name)
	if err != nil {
		return now, err
	}
	if len(now.holders) == 0 {
		s.says("redis", "no key %s: the lock is free", name)
		return now, nil
	}
	for _, field := range slices.Sorted(maps.Keys(now.holders)) {
		s.says("redis", "HGETALL %s   %s = %s", name, field, now.holders[field])
	}
	s.says("redis", "PTTL %s   %d ms", name, now.ttl.Milliseconds())
	return now, nil
}

// waiters waits until a Client listens for the release of the lock.
func (s *stage) waiters(ctx context.Context, name string) error {
	channel := "redisson_lock__channel:{" + name + "}"
	for {
		listening, err := s.Redis.PubSubNumSub(ctx, channel).Result()
		if err != nil || listening[channel] > 0 {
			return err
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// client returns one more process on that server. The scene closes it.
func (s *stage) client(rdb *redis.Client, more ...holdfast.Option) *holdfast.Client {
	return holdfast.New(rdb, slices.Concat(s.options, more)...)
}

// several starts embedded servers for one scene, with a Client on each. close ends all of them.
func (s *stage) several(n int) (servers []*embedded.Server, clients []*holdfast.Client, close func(), err error) {
	if servers, err = embedded.Start(n); err != nil {
		return nil, nil, nil, err
	}
	for _, server := range servers {
		clients = append(clients, s.client(server.Redis))
	}
	return servers, clients, func() {
		for _, client := range clients {
			_ = client.Close()
		}
		embedded.Close(servers)
	}, nil
}

// everyone runs work n times at the same time, and returns when all are done.
func everyone(n int, work func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- work(i) }()
	}
	return all(errs, n)
}

// all waits for n results, and returns their errors.
func all(done <-chan error, n int) (err error) {
	for range n {
		err = errors.Join(err, <-done)
	}
	return err
}

// crowd counts the workers that are inside at the same time. Read most only when all workers have
// left.
type crowd struct {
	mu           sync.Mutex // guards the fields below
	inside, most int
}

func (c *crowd) enter() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside++
	c.most = max(c.most, c.inside)
	return c.inside
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside--
}

// process returns A for an even number, and B for an odd number.
func (s *stage) process(i int) (who string, client *holdfast.Client) {
	if i%2 == 0 {
		return "A", s.A
	}
	return "B", s.B
}

// locking is a Lock, or a function that does the same.
type locking func(ctx context.Context) (*holdfast.Lease, error)

// granted is the outcome of a Lock that waited in the background.
type granted struct {
	lease *holdfast.Lease
	at    time.Time
	err   error
}

// later locks in the background, and sends the outcome on the channel.
func later(ctx context.Context, lock locking) <-chan granted {
	came := make(chan granted, 1)
	go func() {
		l, err := lock(ctx)
		came <- granted{l, time.Now(), err}
	}()
	return came
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// printf prints to out. A tour goes on even if its output is closed, because its exit status
// counts.
func printf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// median returns the middle duration of an odd number of durations.
func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// ms prints a duration in milliseconds.
func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
