// The names that may be those of synchronizers.

package inspect

import (
	"context"
	"regexp"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// pageSize is how many keys a server is asked to go over at a time.
const pageSize = 512

// Scan calls page with the names that match pattern and may be those of
// synchronizers, on every master, until it returns false. A name that is there all
// the while comes at least once.
func Scan(ctx context.Context, m *conn.Manager, pattern string, page func(names []string) bool) error {
	servers, err := m.Masters(ctx)
	if err != nil {
		return err
	}
	for _, server := range servers {
		if ctx.Err() != nil {
			return ctx.Err() // go-redis would still dial
		}
		more, err := scanServer(ctx, m, server, pattern, page)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func scanServer(ctx context.Context, m *conn.Manager, server, pattern string, page func(names []string) bool) (more bool, err error) {
	rdb, err := m.Dial(server)
	if err != nil {
		return false, err
	}
	defer func() { _ = rdb.Close() }()
	for cursor := uint64(0); ; {
		found, next, err := rdb.Scan(ctx, cursor, pattern, pageSize).Result()
		if err != nil {
			return false, conn.Typed(err)
		}
		var names []string
		for _, name := range found {
			if candidate(name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 && !page(names) {
			return false, nil
		}
		if next == 0 {
			return true, nil
		}
		cursor = next
	}
}

// readTimeout is how the keys end that belong to the readers of a read/write lock:
// by their type alone they could be semaphores.
var readTimeout = regexp.MustCompile(`:rwlock_timeout:\d+$`)

// candidate reports whether name may be that of a synchronizer, and not of what
// stands beside one.
func candidate(name string) bool {
	return keys.Check(name) == nil && !readTimeout.MatchString(name)
}
