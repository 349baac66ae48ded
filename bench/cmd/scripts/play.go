// How work is sent again, and what the server needs for it.

package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// depth is how many commands go out before a reply is read.
const depth = 64

// player sends the work again, as often as is wanted.
type player struct {
	work    *work
	name    string
	rdb     *redis.Client
	conn    net.Conn
	replies *bufio.Reader
	chunks  []chunk
	passes  int

	took     []float64 // the server's CPU for an operation, in µs, in each round
	commands float64   // that the scripts run for an operation
}

type chunk struct {
	request []byte
	answers int
}

func newPlayer(ctx context.Context, addr string, w *work, name string) (*player, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &player{work: w, name: name, rdb: redis.NewClient(&redis.Options{Addr: addr}), conn: conn, replies: bufio.NewReaderSize(conn, 64<<10)}
	loaded := make(map[string]bool)
	for _, call := range w.Calls {
		if call.Source != "" && !loaded[call.Source] {
			loaded[call.Source] = true
			if err := p.rdb.ScriptLoad(ctx, call.Source).Err(); err != nil {
				return nil, err
			}
		}
	}
	p.prepare()
	return p, p.pass(ctx, 1) // the first differs: tokens and counts are not there yet
}

// prepare makes the calls ready to send.
func (p *player) prepare() {
	p.chunks = p.chunks[:0]
	for i, call := range p.work.Calls {
		if i%depth == 0 {
			p.chunks = append(p.chunks, chunk{})
		}
		last := &p.chunks[len(p.chunks)-1]
		last.request = call.AppendTo(last.request, from, p.to())
		last.answers++
	}
}

// to returns what names begin with in the present pass.
func (p *player) to() string {
	if p.work.Anew {
		return fmt.Sprintf("scripts:%s:%s:%d:", p.work.Name, p.name, p.passes)
	}
	return fmt.Sprintf("scripts:%s:%s:", p.work.Name, p.name)
}

// pass brings about what the work begins with, and does at least that many operations.
func (p *player) pass(ctx context.Context, atLeast int) error {
	begin := p.rdb.Pipeline()
	for _, words := range p.work.Begin {
		args := make([]any, len(words))
		for i, word := range named(words, p.to()) {
			args[i] = word
		}
		begin.Do(ctx, args...)
	}
	if _, err := begin.Exec(ctx); err != nil && len(p.work.Begin) > 0 {
		return err
	}
	return p.send(atLeast)
}

// send does at least that many operations.
func (p *player) send(atLeast int) error {
	for done := 0; done < atLeast; done += p.work.Ops {
		for _, c := range p.chunks {
			if _, err := p.conn.Write(c.request); err != nil {
				return err
			}
			for range c.answers {
				if err := ceiling.Answered(p.replies); err != nil {
					return err
				}
			}
		}
		if p.passes++; p.work.Anew {
			p.prepare()
		}
	}
	return nil
}

// round measures at least that many operations, after some that are not measured.
func (p *player) round(ctx context.Context, server *measure.Server, atLeast int) error {
	if err := p.pass(ctx, 1); err != nil {
		return err
	}
	first := p.passes
	calls, err := measure.Calls(ctx, p.rdb)
	if err != nil {
		return err
	}
	before, err := server.Served(ctx)
	if err != nil {
		return err
	}
	if err := p.send(atLeast); err != nil {
		return err
	}
	after, err := server.Served(ctx)
	if err != nil {
		return err
	}
	now, err := measure.Calls(ctx, p.rdb)
	if err != nil {
		return err
	}
	done := float64((p.passes - first) * p.work.Ops)
	p.took = append(p.took, float64(after.CPU-before.CPU)/float64(time.Microsecond)/done)
	p.commands = 0
	for name, n := range now {
		if name != "evalsha" && name != "info" {
			p.commands += (n - calls[name]) / done
		}
	}
	return nil
}

// nothing is two scripts that do nothing, with as many words as those of a pair have.
func nothing() *work { return idle("two scripts that do nothing", 2, 2, 4) }

// empty is a script that does nothing, with as many words as that of a limit has.
func empty() *work { return idle("a script that does nothing", 1, 1, 8) }

func idle(name string, scripts, keys, args int) *work {
	const source = "return 1"
	sum := sha1.Sum([]byte(source))
	words := []string{"evalsha", hex.EncodeToString(sum[:]), fmt.Sprint(keys)}
	for i := range keys + args {
		words = append(words, fmt.Sprintf("%036d", i))
	}
	w := &work{Name: name, Ops: tries}
	for range scripts * tries {
		w.Calls = append(w.Calls, ceiling.Sent{Words: words, At: time.Now(), Source: source})
	}
	return w
}

// bare is what the scripts of a pair run, without scripts.
func bare() *work {
	w := &work{Name: "a pair's commands without scripts", Ops: tries}
	for i := range tries {
		key, token, owner := fmt.Sprint(from, i), fmt.Sprintf("{%s%d}:token", from, i), uuid+":1"
		for _, words := range [][]string{
			{"TIME"}, {"PTTL", key}, {"SET", token, "1764000000000000", "XX", "GET", "KEEPTTL"}, {"HSET", key, owner, "1"},
			{"PEXPIRE", key, "30000"}, {"ZCARD", "{" + key + "}:queue"}, {"HDEL", key, owner}, {"PUBLISH", "{" + key + "}:channel", "0"},
		} {
			w.Calls = append(w.Calls, ceiling.Sent{Words: words, At: time.Now()})
		}
	}
	return w
}
