// Package ceiling measures what the server itself can do: the scripts that Holdfast
// sends for a pair, sent by a client that does nothing else, in deep pipelines.
package ceiling

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Name is the ceiling's among those that are compared.
const Name = "raw pipelines"

// connections keep the server at work while one of them takes in its replies.
const connections = 4

// Pipelines are connections that have the commands of many pairs ready to send.
type Pipelines struct {
	all []*pipeline
}

type pipeline struct {
	conn    net.Conn
	replies *bufio.Reader
	pairs   int64
	request []byte
	answers int
}

// Open prepares pairs on that many locks, whose names begin with name.
func Open(ctx context.Context, addr, name string, locks int) (*Pipelines, error) {
	probe := name + ":probe"
	pair, err := record(ctx, addr, probe)
	if err != nil {
		return nil, err
	}
	p := &Pipelines{}
	for i := range min(connections, locks) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			p.Close()
			return nil, err
		}
		line := &pipeline{conn: conn, replies: bufio.NewReaderSize(conn, 64<<10)}
		p.all = append(p.all, line)
		for lock := i; lock < locks; lock += connections {
			if err := line.add(pair, probe, fmt.Sprintf("%s:%d", name, lock)); err != nil {
				p.Close()
				return nil, err
			}
		}
	}
	return p, nil
}

func (l *pipeline) add(pair []command, from, to string) error {
	for _, c := range pair {
		c, err := c.on(from, to)
		if err != nil {
			return err
		}
		l.request = c.appendTo(l.request)
		l.answers++
	}
	l.pairs++
	return nil
}

// Len returns how many pipelines there are.
func (p *Pipelines) Len() int { return len(p.all) }

// Close closes the connections.
func (p *Pipelines) Close() {
	for _, l := range p.all {
		l.conn.Close()
	}
}

// Pairs does a pair on each lock of one pipeline, in one go, and returns how many
// these are. One goroutine at a time uses a pipeline.
func (p *Pipelines) Pairs(i int) (int64, error) {
	l := p.all[i]
	if _, err := l.conn.Write(l.request); err != nil {
		return 0, err
	}
	for range l.answers {
		if err := granted(l.replies); err != nil {
			return 0, err
		}
	}
	return l.pairs, nil
}

// errNotGranted says that the scripts, sent again, do not do what they did for
// Holdfast: then this is no ceiling.
var errNotGranted = errors.New("ceiling: a script sent again is answered otherwise")

// granted reads the answer of one script, which begins with 1 if it did its work.
func granted(r *bufio.Reader) error {
	elements, err := length(r, '*')
	if err != nil {
		return err
	}
	for i := range elements {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, ":") || i == 0 && line != ":1\r\n" {
			return fmt.Errorf("%w: element %d is %q", errNotGranted, i, line)
		}
	}
	return nil
}
