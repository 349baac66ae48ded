// Finding the names at which a synchronizer may stand.

package inspect

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/pause"
)

// pageSize is how many keys a server is asked to go over in one SCAN.
const pageSize = 512

// longestNumber is how many bytes a whole number has at most.
const longestNumber = 20

// Scan calls page with the names in the Space, without its prefix, that match pattern and at which a
// synchronizer may stand, on every master, until page returns false. A name that exists all the while comes at least once.
func Scan(ctx context.Context, m *conn.Manager, space keys.Space, pattern string, page func(names []string) bool) error {
	servers, err := m.Masters(ctx)
	if err != nil {
		return err
	}
	for n, server := range servers {
		if ctx.Err() != nil {
			return ctx.Err() // go-redis would still dial
		}
		more, err := scanServer(ctx, m.DialAtOnce(server), scans(space, pattern), place{n, len(servers)}, page)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// place is the nth of so many.
type place struct{ n, of int }

// scanServer goes over the keys of one server, and closes the connection to it.
func scanServer(
	ctx context.Context, rdb *redis.Client, all []scan, server place, page func(names []string) bool,
) (more bool, err error) {
	defer func() { _ = rdb.Close() }()
	whole := stretchOf(ctx, rdb, server.n, server.of)
	for n, s := range all {
		if more, err = s.run(ctx, rdb, whole.part(n, len(all)), page); err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// scan is one way over the keys of a server: over those of one type that match the pattern. names
// returns the names, as they are in Redis, that they belong to.
type scan struct {
	space         keys.Space
	kind, pattern string
	names         func(ctx context.Context, rdb *redis.Client, found []string) []string
}

// scans returns what finds all names of the Space that match the pattern: a lock is a hash at its name,
// what is counted is a string, and a Once, a barrier, slots, shards and a limit have nothing but a record beside
// their name.
func scans(space keys.Space, pattern string) []scan {
	within := space.Pattern(pattern)
	return []scan{
		{space, "hash", within, func(_ context.Context, _ *redis.Client, found []string) []string { return candidates(space, found) }},
		{space, "string", within, func(ctx context.Context, rdb *redis.Client, found []string) []string {
			return numbers(ctx, rdb, candidates(space, found))
		}},
		{space, "hash", space.RecordsPattern(), func(ctx context.Context, rdb *redis.Client, found []string) []string {
			return underWay(ctx, rdb, space, found, within)
		}},
		{space, "zset", space.SlotsPattern(), func(_ context.Context, _ *redis.Client, found []string) []string {
			names, _ := ofRecords(space, found, within)
			return names
		}},
		{space, "zset", space.ShardsPattern(), func(_ context.Context, _ *redis.Client, found []string) []string {
			names, _ := ofRecords(space, found, within)
			return names
		}},
		{space, "string", space.LimitsPattern(), func(ctx context.Context, rdb *redis.Client, found []string) []string {
			return spent(ctx, rdb, space, found, within)
		}},
	}
}

// run goes over the keys, on a connection of its own. After each page it pauses for as long as the page
// took, so that the server has half of the time for others.
func (s scan) run(
	ctx context.Context, rdb *redis.Client, progress *stretch, page func(names []string) bool,
) (more bool, err error) {
	gone := int64(0)
	for cursor := uint64(0); ; gone += pageSize {
		progress.at(gone)
		begin := time.Now()
		found, next, err := rdb.ScanType(ctx, cursor, s.pattern, pageSize, s.kind).Result()
		if err != nil {
			return false, conn.Typed(err)
		}
		Answered(ctx)
		names := s.names(ctx, rdb, found)
		for i, name := range names {
			names[i], _ = s.space.Name(name)
		}
		if len(names) > 0 && !page(names) {
			return false, nil
		}
		if next == 0 {
			return true, nil
		}
		cursor = next
		if err := engine.Sleep(ctx, min(time.Since(begin), longestPause)); err != nil {
			return false, err
		}
	}
}

// longestPause bounds the pause after a page whose reader was slow.
const longestPause = 100 * time.Millisecond

// numbers returns the names at which a whole number may stand. Most strings are something else of
// the program's: finding that out costs less than inspecting them.
func numbers(ctx context.Context, rdb *redis.Client, names []string) []string {
	short := names[:0]
	for i, cmd := range each(ctx, rdb, names, func(p redis.Pipeliner, name string) redis.Cmder { return p.StrLen(ctx, name) }) {
		if n, err := cmd.(*redis.IntCmd).Result(); err != nil || n <= longestNumber {
			short = append(short, names[i]) // if it may not be read, Inspect says so
		}
	}
	whole := short[:0]
	for i, cmd := range each(ctx, rdb, short, func(p redis.Pipeliner, name string) redis.Cmder { return p.Get(ctx, name) }) {
		text, err := cmd.(*redis.StringCmd).Result()
		if _, is := strconv.ParseInt(text, 10, 64); err != nil || is == nil {
			whole = append(whole, short[i])
		}
	}
	return whole
}

// underWay returns the names of those records that match the pattern, without those of a Once whose work
// is done: there may be very many, and finding that out costs less than inspecting them.
func underWay(ctx context.Context, rdb *redis.Client, space keys.Space, found []string, pattern string) []string {
	names, records := ofRecords(space, found, pattern)
	left := names[:0]
	for i, cmd := range each(ctx, rdb, records, func(p redis.Pipeliner, record string) redis.Cmder { return p.HExists(ctx, record, "by") }) {
		if done, err := cmd.(*redis.BoolCmd).Result(); err != nil || !done {
			left = append(left, names[i])
		}
	}
	return left
}

// ofRecords returns the names that match the pattern and whose records were found, and those records.
func ofRecords(space keys.Space, found []string, pattern string) (names, records []string) {
	for _, record := range found {
		if name, ok := space.NameOf(record); ok && Matches(pattern, name) {
			names, records = append(names, name), append(records, record)
		}
	}
	return names, records
}

// spent returns the names of the pauses and limits that match the pattern, without pauses that have ended, and without
// limits that let more than one unit through at once: there may be millions of these, and finding that out costs less
// than inspecting them.
func spent(ctx context.Context, rdb *redis.Client, space keys.Space, found []string, pattern string) []string {
	names, limits := ofRecords(space, found, pattern)
	debts := each(ctx, rdb, limits, func(p redis.Pipeliner, key string) redis.Cmder { return p.PTTL(ctx, key) })
	left := names[:0]
	for i, cmd := range each(ctx, rdb, limits, func(p redis.Pipeliner, key string) redis.Cmder { return p.Get(ctx, key) }) {
		state, err := cmd.(*redis.StringCmd).Result()
		debt, _ := debts[i].(*redis.DurationCmd).Result()
		if err != nil || space.IsPause(limits[i]) && pause.Parse(state).Lasts() || barred(state, debt) {
			left = append(left, names[i])
		}
	}
	return left
}

// barred reports whether a limit may be spent. lives is how long its key lives: as long as the debt
// lasts, or longer.
func barred(state string, lives time.Duration) bool {
	var seconds, micros, taken, count, period, burst int64
	var debt float64
	if _, err := fmt.Sscan(state, &seconds, &micros, &debt, &taken, &count, &period, &burst); err != nil || count == 0 {
		return false
	}
	return lives+time.Millisecond >= time.Duration(float64(burst-1)*float64(period)/float64(count))*time.Microsecond
}

// each sends one command for each name, in one pipeline.
func each(ctx context.Context, rdb *redis.Client, names []string, ask func(redis.Pipeliner, string) redis.Cmder) []redis.Cmder {
	if len(names) == 0 {
		return nil
	}
	pipe, cmds := rdb.Pipeline(), make([]redis.Cmder, len(names))
	for i, name := range names {
		cmds[i] = ask(pipe, name)
	}
	_, _ = pipe.Exec(ctx) // each has its own error
	return cmds
}

// readTimeout matches the end of the keys of readers of a read/write lock: by their type alone they
// could be semaphores.
var readTimeout = regexp.MustCompile(`:rwlock_timeout:\d+$`)

// candidate reports whether name may be the name of a synchronizer, and not just a key beside one.
func candidate(space keys.Space, name string) bool {
	return space.Check(name) == nil && !keys.BesidePrefixed(name) && !readTimeout.MatchString(name)
}

func candidates(space keys.Space, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !candidate(space, name) })
}
