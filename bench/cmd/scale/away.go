// A connection to a server that is far away.

package main

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialAway returns a dialer whose connections deliver what is written after d. What is written next
// does not wait for that.
func dialAway(d time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: 5 * time.Second})
	if d == 0 {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		time.Sleep(d)
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		far := &away{Conn: conn, delay: d, ended: make(chan struct{}), written: make(chan parcel, 1024)}
		go far.deliver()
		return far, nil
	}
}

type away struct {
	net.Conn
	delay   time.Duration
	written chan parcel
	ended   chan struct{}
}

type parcel struct {
	due  time.Time
	data []byte
}

// Write implements net.Conn. It returns at once.
func (a *away) Write(b []byte) (int, error) {
	select {
	case a.written <- parcel{time.Now().Add(a.delay), append([]byte(nil), b...)}:
		return len(b), nil
	case <-a.ended:
		return 0, net.ErrClosed
	}
}

func (a *away) deliver() {
	defer close(a.ended)
	defer a.Conn.Close()
	for p := range a.written {
		time.Sleep(time.Until(p.due))
		if p.data == nil {
			return
		}
		if _, err := a.Conn.Write(p.data); err != nil {
			return
		}
	}
}

// Close implements net.Conn.
func (a *away) Close() error {
	select {
	case a.written <- parcel{due: time.Now()}:
	default:
	}
	return a.Conn.Close()
}
