// This file records what Holdfast sends for one pair, by listening on its connection: so the record
// is what this version sends, and not an outdated copy.

package ceiling

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// command is one command, as a list of its words.
type command []string

// record returns the commands of an uncontended pair on a lock of that name. Afterwards the server
// knows the scripts.
func record(ctx context.Context, addr, name string) ([]command, error) {
	var heard tape
	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: heard.dial})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	mutex := client.Mutex(name)
	// The first pair connects, and sends the sources of the scripts.
	for range 2 {
		heard.rewind()
		lease, err := mutex.Lock(ctx)
		if err != nil {
			return nil, err
		}
		if err := lease.Release(ctx); err != nil {
			return nil, err
		}
	}
	return heard.commands()
}

// tape keeps everything that is written to the connections that it dials.
type tape struct {
	mu      sync.Mutex
	written bytes.Buffer
}

func (t *tape) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &taped{conn, t}, err
}

func (t *tape) rewind() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written.Reset()
}

func (t *tape) commands() ([]command, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return parse(t.written.Bytes())
}

type taped struct {
	net.Conn
	tape *tape
}

func (c *taped) Write(b []byte) (int, error) {
	c.tape.mu.Lock()
	c.tape.written.Write(b)
	c.tape.mu.Unlock()
	return c.Conn.Write(b)
}

// parse splits what a client wrote into commands: arrays of bulk strings.
func parse(written []byte) ([]command, error) {
	r := bufio.NewReader(bytes.NewReader(written))
	var all []command
	for {
		words, err := length(r, '*')
		if err == io.EOF {
			return all, nil
		}
		var c command
		for i := 0; err == nil && i < words; i++ {
			var n int
			if n, err = length(r, '$'); err == nil {
				word := make([]byte, n+2) // the word ends with \r\n
				_, err = io.ReadFull(r, word)
				c = append(c, string(word[:n]))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("ceiling: what was written is no command: %w", err)
		}
		all = append(all, c)
	}
}

// length reads a line such as $12 and returns the 12.
func length(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q does not begin with %q", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// on returns the call of a script for a lock of another name. It moves the not-after, the script's
// first argument, so that the call may be sent at a later time.
func (c command) on(from, to string) (command, error) {
	const anHour = 3_600_000_000 // in microseconds
	if len(c) < 4 || !strings.EqualFold(c[0], "evalsha") {
		return nil, fmt.Errorf("ceiling: Holdfast sends %q where a script was expected", c[:1])
	}
	other := make(command, len(c))
	for i, word := range c {
		other[i] = strings.ReplaceAll(word, from, to)
	}
	keys, err := strconv.Atoi(c[2])
	if err != nil || len(c) <= 3+keys {
		return nil, fmt.Errorf("ceiling: a script has %q keys", c[2])
	}
	if notAfter, err := strconv.ParseInt(c[3+keys], 10, 64); err == nil && notAfter > 0 {
		other[3+keys] = strconv.FormatInt(notAfter+anHour, 10)
	}
	return other, nil
}

// appendTo appends the command as a client sends it.
func (c command) appendTo(b []byte) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(c))
	for _, word := range c {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}
