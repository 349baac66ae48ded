// Package ceiling measures what the server itself can do: a client that does nothing else sends the
// scripts that Holdfast sends for pairs, in deep pipelines.
package ceiling

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// These are the names of the ceilings among the contenders. In Name, the scripts are those that
// Holdfast sends for one goroutine: one for each acquire, and one for each release. In AsSent they
// are those that it sends for Callers goroutines, in the same order and with the same numbers of
// locks in each.
const (
	Name   = "raw pipelines"
	AsSent = "raw pipelines, as 256 goroutines send"
)

// Callers is the number of goroutines that AsSent listens to.
const Callers = 256

const (
	connections = 4   // while one takes in its replies, the others keep the server at work
	depth       = 128 // commands in one pipeline
)

// Pipelines are connections that have the commands of many pairs ready to send.
type Pipelines struct {
	all   []*pipeline
	rdb   *redis.Client
	calls map[string]float64 // of the server, before what Check checks
	each  map[string]float64 // of one round of one pipeline
}

// pipeline sends what was recorded, to locks that no other pipeline uses.
type pipeline struct {
	conn    net.Conn
	replies *bufio.Reader
	chunks  []chunk
	next    int   // the chunk to send
	pairs   int64 // in all chunks
	rounds  int64 // through all chunks, since calls were noted
}

// chunk is what is sent before any reply is read.
type chunk struct {
	request []byte
	answers int
}

// Open records the pairs of that many goroutines, and prepares to send the same. The names of the
// locks begin with name. Nothing else may use the server.
func Open(ctx context.Context, addr, name string, callers int) (*Pipelines, error) {
	p := &Pipelines{rdb: redis.NewClient(&redis.Options{Addr: addr})}
	err := p.open(ctx, addr, name, callers)
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Pipelines) open(ctx context.Context, addr, name string, callers int) error {
	heard, err := record(ctx, p.rdb, addr, name, callers)
	if err != nil {
		return err
	}
	p.each = heard.calls
	for i := range connections {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		line := &pipeline{conn: conn, replies: newReplies(conn), pairs: heard.pairs}
		p.all = append(p.all, line)
		line.prepare(heard.commands, recorded(name), fmt.Sprintf("%s:%c:", name, 'a'+i))
		if err := line.round(); err != nil { // the locks' first pairs differ from all others
			return err
		}
	}
	if p.calls, err = measure.Calls(ctx, p.rdb); err != nil {
		return err
	}
	for _, line := range p.all {
		line.rounds = 0
		if err := line.round(); err != nil {
			return err
		}
	}
	return p.Check(ctx)
}

func newReplies(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

// prepare makes the commands ready to send, on locks of other names.
func (l *pipeline) prepare(commands []command, from, to string) {
	for i, c := range commands {
		if i%depth == 0 {
			l.chunks = append(l.chunks, chunk{})
		}
		last := &l.chunks[len(l.chunks)-1]
		last.request = c.on(from, to).appendTo(last.request)
		last.answers++
	}
}

// Len returns the number of pipelines.
func (p *Pipelines) Len() int { return len(p.all) }

// Close closes the connections.
func (p *Pipelines) Close() {
	for _, l := range p.all {
		l.conn.Close()
	}
	p.rdb.Close()
}

// Pairs sends the next commands by one pipeline, and returns how many pairs they are. Only one
// goroutine at a time may use a pipeline.
func (p *Pipelines) Pairs(i int) (int64, error) { return p.all[i].send() }

func (l *pipeline) send() (int64, error) {
	c := l.chunks[l.next]
	if _, err := l.conn.Write(c.request); err != nil {
		return 0, err
	}
	for range c.answers {
		if err := Answered(l.replies); err != nil {
			return 0, err
		}
	}
	done := l.share(l.next+1) - l.share(l.next)
	if l.next++; l.next == len(l.chunks) {
		l.next = 0
		l.rounds++
	}
	return done, nil
}

// share returns about how many pairs the first chunks are.
func (l *pipeline) share(chunks int) int64 { return l.pairs * int64(chunks) / int64(len(l.chunks)) }

// round sends what is left of a round.
func (l *pipeline) round() error {
	for {
		if _, err := l.send(); err != nil || l.next == 0 {
			return err
		}
	}
}

// errOtherwise says that the scripts, when they are sent again, do not do what they did for
// Holdfast. In that case the measurement is no ceiling.
var errOtherwise = errors.New("ceiling: scripts sent again do otherwise")

// tolerance is the share by which the calls may fall short. More calls are no fault: a token's
// expiry is put off only now and then.
const tolerance = 0.001

// Check compares what all rounds until now made the server call with what Holdfast's pairs made it
// call. A grant writes, and a refusal does not: so as many calls show that all was granted. Check
// first ends the rounds that are under way. No pipeline may be in use.
func (p *Pipelines) Check(ctx context.Context) error {
	for _, l := range p.all {
		if l.next == 0 {
			continue
		}
		if err := l.round(); err != nil {
			return err
		}
	}
	now, err := measure.Calls(ctx, p.rdb)
	if err != nil {
		return err
	}
	rounds := 0.0
	for _, l := range p.all {
		rounds += float64(l.rounds)
	}
	for name, each := range p.each {
		got, want := now[name]-p.calls[name], each*rounds
		if got < want*(1-tolerance) {
			return fmt.Errorf("%w: %.0f calls of %s, not %.0f", errOtherwise, got, name, want)
		}
	}
	return nil
}

// Answered reads one reply. It may be any but an error.
func Answered(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	switch line[0] {
	case '-':
		return fmt.Errorf("%w: %q", errOtherwise, line)
	case '*', '$':
	default:
		return nil
	}
	n, err := size(line)
	if err != nil {
		return err
	}
	if line[0] == '$' && n >= 0 {
		_, err = r.Discard(n + len("\r\n"))
		return err
	}
	for range n {
		if err := Answered(r); err != nil {
			return err
		}
	}
	return nil
}

// size returns the 12 of a line such as $12.
func size(line []byte) (int, error) {
	return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
}
