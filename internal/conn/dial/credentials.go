// Credentials that the user's program supplies as a stream.

package dial

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// Feed is one subscription to a StreamingCredentialsProvider, shared by all connections of a
// Manager. go-redis subscribes once for each connection, and cannot do that at all for the kind
// of client that a wire uses.
//
// A new connection is made with the newest credentials. On an existing connection, the server
// gets the newest credentials before the next request. If the server refuses them, the
// connection goes on with the old ones.
type Feed struct {
	provider auth.StreamingCredentialsProvider
	log      *slog.Logger
	count    atomic.Int64 // how many credentials have come

	mu          sync.Mutex // guards what follows
	username    string
	password    string
	known       bool
	subscribing chan struct{} // closed when the attempt under way has ended; nil if there is none
	unsubscribe auth.UnsubscribeFunc
	closed      bool
}

// Version returns how many credentials have come. It is 0 if there is no stream.
func (f *Feed) Version() int64 {
	if f == nil {
		return 0
	}
	return f.count.Load()
}

// Credentials returns the newest credentials. The first call subscribes.
func (f *Feed) Credentials(ctx context.Context) (username, password string, err error) {
	for {
		f.mu.Lock()
		username, password, known, wait := f.username, f.password, f.known, f.subscribing
		mine := !known && wait == nil
		if mine {
			f.subscribing = make(chan struct{})
		}
		f.mu.Unlock()
		switch {
		case known:
			return username, password, nil
		case mine:
			if err := f.subscribe(ctx); err != nil {
				return "", "", err
			}
		default:
			select {
			case <-wait:
			case <-ctx.Done():
				return "", "", ctx.Err()
			}
		}
	}
}

// subscribe subscribes at the provider, which may call the listener before it returns, or
// return after ctx has ended.
func (f *Feed) subscribe(ctx context.Context) error {
	_, err := Guarded(ctx, "StreamingCredentialsProvider", func() (struct{}, error) {
		defer f.subscribed()
		first, unsubscribe, err := f.provider.Subscribe(f)
		if err != nil {
			return struct{}{}, err
		}
		f.take(unsubscribe)
		f.first(first)
		return struct{}{}, nil
	}, nil)
	return err
}

func (f *Feed) subscribed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.subscribing)
	f.subscribing = nil
}

// take records a subscription that has begun. If the feed has been closed, it unsubscribes at
// once.
func (f *Feed) take(unsubscribe auth.UnsubscribeFunc) {
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.unsubscribe = unsubscribe
	}
	f.mu.Unlock()
	if closed && unsubscribe != nil {
		_ = unsubscribe()
	}
}

// first records the credentials that came with the subscription, unless the listener has got newer
// ones meanwhile.
func (f *Feed) first(c auth.Credentials) {
	if f.count.Load() == 0 {
		f.OnNext(c)
	}
}

// OnNext is called by the provider with new credentials.
func (f *Feed) OnNext(c auth.Credentials) {
	username, password := c.BasicAuth()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.username, f.password, f.known = username, password, true
	f.count.Add(1)
}

// OnError is called by the provider when it has no new credentials. The last ones are used
// until Redis refuses them.
func (f *Feed) OnError(err error) {
	f.log.Warn("holdfast: no new credentials from the provider", "error", err)
}

// Tell sends the newest credentials on a connection that is already authenticated. A refusal is
// not a failure of the connection, which keeps the rights it had. The next request finds any
// other failure.
func (f *Feed) Tell(ctx context.Context, rdb *redis.Conn) {
	username, password, err := f.Credentials(ctx)
	if err != nil {
		return
	}
	if username == "" {
		err = rdb.Auth(ctx, password).Err()
	} else {
		err = rdb.AuthACL(ctx, username, password).Err()
	}
	if err != nil && fault.IsReply(err) {
		f.log.Warn("holdfast: redis refuses the new credentials; the connection goes on with the old ones", "error", err)
	}
}

// unsubscribeTimeout is how long Close waits for the provider.
const unsubscribeTimeout = 500 * time.Millisecond

func (f *Feed) close() {
	f.mu.Lock()
	unsubscribe := f.unsubscribe
	f.unsubscribe, f.closed = nil, true
	f.mu.Unlock()
	if unsubscribe == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeTimeout)
	defer cancel()
	_, _ = Guarded(ctx, "UnsubscribeFunc", func() (struct{}, error) { return struct{}{}, unsubscribe() }, nil)
}

// Feeds are the feeds of one Manager: one for each provider.
type Feeds struct {
	log *slog.Logger
	mu  sync.Mutex
	all []*Feed
}

// NewFeeds returns no feeds yet. They write to the log.
func NewFeeds(log *slog.Logger) *Feeds { return &Feeds{log: log} }

// Of returns the provider's feed; nil if provider is nil.
func (fs *Feeds) Of(provider auth.StreamingCredentialsProvider) *Feed {
	if provider == nil {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.all {
		if reflect.TypeOf(provider).Comparable() && f.provider == provider {
			return f
		}
	}
	f := &Feed{provider: provider, log: fs.log}
	fs.all = append(fs.all, f)
	return f
}

// Close ends every subscription.
func (fs *Feeds) Close() {
	fs.mu.Lock()
	all := fs.all
	fs.mu.Unlock()
	for _, f := range all {
		f.close()
	}
}
