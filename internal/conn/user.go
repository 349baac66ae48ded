// What is the user's and runs while a connection is made: it may block or panic, and
// neither holds up a lock or Close, nor ends the process.

package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// guarded runs f, a function of the user's that is called name. A panic in it is an
// error. When ctx ends f is left behind, as it need not look at ctx; late is then given
// what it returns.
func guarded[T any](ctx context.Context, name string, f func() (T, error), late func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("%s did not return", name)} // but ended its goroutine
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

// within dials. Not every dialer looks at its context, go-redis's own for TLS among them:
// what is left behind ends by the dialer's own timeout.
func within(ctx context.Context, network, addr string, dial dialer) (net.Conn, error) {
	conn, err := guarded(ctx, "Dialer", func() (net.Conn, error) { return dial(ctx, network, addr) },
		func(conn net.Conn) { drop(conn) })
	switch {
	case err != nil:
		return nil, err // go-redis's own dialer returns a nil *tls.Conn beside its error
	case conn == nil:
		return nil, errors.New("the Dialer returned no connection")
	}
	return conn, nil
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)
