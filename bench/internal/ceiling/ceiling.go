// Package ceiling measures what the server itself can do: a client that does nothing else sends the
// scripts that Holdfast sends for a pair, in deep pipelines.
package ceiling

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Name is the name of the ceiling among the contenders.
const Name = "raw pipelines"

// Several connections keep the server at work while one of them takes in its replies.
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

// Open prepares pairs on that many locks. The names of the locks begin with name.
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

// Len returns the number of pipelines.
func (p *Pipelines) Len() int { return len(p.all) }

// Close closes the connections.
func (p *Pipelines) Close() {
	for _, l := range p.all {
		l.conn.Close()
	}
}

// Pairs does a pair on each lock of one pipeline, in one go, and returns the number of pairs. Only
// one goroutine at a time may use a pipeline.
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

// errNotGranted says that the scripts, when they are sent again, do not do what they did for
// Holdfast. In that case the measurement is no ceiling.
var errNotGranted = errors.New("ceiling: a script sent again is answered otherwise")

// granted reads the answer of one script. The answer begins with 1 if the script did its work.
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
