// The theatre is the server that the scenes play on, and the two processes.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

// theatre is one Redis, and two Clients on it. Each Client has its own part in the owner ids, its
// own connections and its own renewals. So two Clients in one process meet only in Redis, as two
// processes do.
type theatre struct {
	rdb      *redis.Client
	embedded []*embedded.Server // none if the user gave a server
	shared   string             // the prefix of names that every tour on the server uses
	prefix   string             // the prefix of all other names
	a, b     *holdfast.Client
	options  []holdfast.Option // of every Client
}

// open starts an embedded server, or connects to the server at url.
func open(ctx context.Context, url string, options []holdfast.Option) (t *theatre, err error) {
	t = &theatre{options: options}
	if url == "" {
		if t.embedded, err = embedded.Start(1); err != nil {
			return nil, err
		}
		t.rdb = t.embedded[0].Redis
	} else {
		t.shared = "holdfast-tour:"
		t.prefix = t.shared + uuid.NewString()[:8] + ":"
		if t.rdb, err = embedded.Dial(ctx, url); err != nil {
			return nil, err
		}
	}
	t.a, t.b = holdfast.New(t.rdb, options...), holdfast.New(t.rdb, options...)
	return t, nil
}

// introduce prints what is on the stage.
func (t *theatre) introduce(out io.Writer) {
	where := "an embedded server, miniredis; REDIS_URL names another"
	if len(t.embedded) == 0 {
		where = fmt.Sprintf("the Redis at %s; keys begin with %q and are removed at the end", t.rdb.Options().Addr, t.prefix)
	}
	printf(out, "A tour of Holdfast on %s.\n", where)
	printf(out, "A and B are two Clients and stand for two processes. A lease lasts 30 s unless you\n")
	printf(out, "say otherwise; here most last about a second, so that you need not wait.\n")
}

// close ends everything, and removes the keys from a server that the user gave.
func (t *theatre) close() error {
	err := errors.Join(t.a.Close(), t.b.Close())
	if len(t.embedded) > 0 {
		embedded.Close(t.embedded)
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, t.sweep(ctx), t.rdb.Close())
}

// sweep removes the keys of this tour. The lock that all tours share expires; the
// last tour on the server removes its token.
func (t *theatre) sweep(ctx context.Context) error {
	// The keys beside a name, such as its token, contain the name.
	found := t.rdb.Scan(ctx, 0, "*"+t.prefix+"*", 1000).Iterator()
	for found.Next(ctx) {
		if err := t.rdb.Del(ctx, found.Val()).Err(); err != nil {
			return err
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	lock := t.shared + "resource:x"
	held, err := t.rdb.Exists(ctx, lock).Result()
	if err != nil || held > 0 {
		return err
	}
	return t.rdb.Del(ctx, "redisson_lock_token:{"+lock+"}").Err()
}
