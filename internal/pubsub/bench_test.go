// This benchmark measures what a message costs the client, from the socket to the wake-up.

package pubsub

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// BenchmarkDispatch delivers messages to 10 000 channels on one connection, in turn, as fast as the
// client takes them. Each operation is one message.
func BenchmarkDispatch(b *testing.B) {
	const n = 10_000
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	publish := make(chan int)
	served := make(chan error, 1)
	go func() { served <- publisher(listener, n, publish) }()

	s := New(benchSource(listener.Addr().String()), Config{})
	end := s.Subscribe("end")
	subs := make([]*Subscription, n)
	for i := range subs {
		subs[i] = s.Subscribe(benchChannel(i))
	}
	for _, sub := range append(subs, end) {
		<-sub.C()
	}

	b.ReportAllocs()
	b.ResetTimer()
	publish <- b.N
	<-end.C()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")

	s.Close()
	close(publish)
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}

func benchChannel(i int) string { return fmt.Sprintf("redisson_lock__channel:{orders:%d}", i) }

type benchSource string

func (s benchSource) Home(context.Context, string) (string, error) { return string(s), nil }
func (s benchSource) Sharded(context.Context) (bool, error)        { return false, nil }
func (s benchSource) Moved(string)                                 {}

func (s benchSource) Dial(home string) (*redis.Client, error) {
	return redis.NewClient(&redis.Options{Addr: home, Protocol: 2}), nil
}

// publisher serves one connection. It confirms subscriptions. For each number that it is told, it
// sends that many messages, to each of n channels in turn, and then one message to "end".
func publisher(listener net.Listener, n int, publish <-chan int) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	replied := make(chan error, 1)
	go func() { replied <- confirm(conn) }()

	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = frame("message", benchChannel(i), "$1\r\n0\r\n")
	}
	for count := range publish {
		w := bufio.NewWriterSize(conn, 1<<16)
		for i := range count {
			w.Write(frames[i%n])
		}
		w.Write(frame("message", "end", "$1\r\n0\r\n"))
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if err := <-replied; err != io.EOF && !strings.Contains(err.Error(), "reset") {
		return err
	}
	return nil
}

// confirm answers commands until the connection ends.
func confirm(conn net.Conn) error {
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return err
		}
		var reply bytes.Buffer
		switch strings.ToLower(args[0]) {
		case "subscribe":
			for _, name := range args[1:] {
				reply.Write(frame("subscribe", name, ":1\r\n"))
			}
		case "ping":
			reply.WriteString("+PONG\r\n")
		default:
			reply.WriteString("-ERR unknown command\r\n")
		}
		if _, err := conn.Write(reply.Bytes()); err != nil {
			return err
		}
	}
}

func frame(kind, channel, last string) []byte {
	return fmt.Appendf(nil, "*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n%s", len(kind), kind, len(channel), channel, last)
}

func readCommand(r *bufio.Reader) ([]string, error) {
	count, err := readNumber(r)
	if err != nil {
		return nil, err
	}
	args := make([]string, count)
	for i := range args {
		size, err := readNumber(r)
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		args[i] = string(arg[:size])
	}
	return args, nil
}

func readNumber(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
