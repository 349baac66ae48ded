// The user's functions that run while a connection is made. They may block or panic; neither
// holds up a lock or Close, nor ends the process.

package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Guarded runs f, a function of the user's; name is for errors. A panic in f becomes an error.
// When ctx ends, Guarded leaves f behind, because f need not look at ctx; if f then returns a
// value without an error, late is called with it.
func Guarded[T any](ctx context.Context, name string, f func() (T, error), late func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("%s did not return", name)} // the result if f ends its goroutine
		defer func() { done <- r }()
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%s panicked: %v", name, p)
			}
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		if late != nil {
			go func() {
				if r := <-done; r.err == nil {
					late(r.value)
				}
			}()
		}
		var none T
		return none, ctx.Err()
	}
}

// Within dials, and returns when ctx ends. Not every dialer looks at its context; go-redis's
// own for TLS does not. A dialer that is left behind ends by its own timeout.
func Within(ctx context.Context, network, addr string, dial Dialer) (net.Conn, error) {
	conn, err := Guarded(ctx, "Dialer", func() (net.Conn, error) { return dial(ctx, network, addr) },
		func(conn net.Conn) { Drop(conn) })
	switch {
	case err != nil:
		return nil, err // go-redis's own dialer returns a nil *tls.Conn beside its error
	case conn == nil:
		return nil, errors.New("the Dialer returned no connection")
	}
	return withDeadlines(conn), nil
}

// Dialer makes connections, as that of go-redis's options does.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Bounded returns dial as a dialer that returns when its context ends.
func Bounded(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return Within(ctx, network, addr, dial)
	}
}
