// The scripts command measures what the scripts of a lock and its release cost a server, whatever its client does:
// they are sent again in deep pipelines, as Holdfast has sent them.
//
//	cd bench
//	go run ./cmd/scripts                                      redis-server from PATH
//	go run ./cmd/scripts "$(../.ci/servers valkey9)" ...      others
//
// It prints the server's own CPU time for a pair, the median of some rounds, in which the rows take turns: with a
// script for each call, in bundles as 256 goroutines send them, and for two scripts that do nothing, which is what
// no script can be cheaper than. Compare ratios, not times. Two versions of Holdfast are compared by running the
// command in two checkouts in turn.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

const (
	rounds = 7
	each   = 20_000 // pairs of a row in a round
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binaries := os.Args[1:]
	if len(binaries) == 0 {
		binaries = []string{"redis-server"}
	}
	for _, binary := range binaries {
		if err := run(ctx, binary); err != nil {
			fmt.Fprintln(os.Stderr, "scripts:", err)
			os.Exit(1)
		}
	}
}

// row is one way to make pairs.
type row struct {
	name string
	pair func() (pairs int64, err error) // makes some
	took []time.Duration                 // of the server's CPU for a pair, in each round
}

func run(ctx context.Context, binary string) error {
	server, err := measure.StartBinary(ctx, binary)
	if err != nil {
		return err
	}
	defer server.Stop()
	var rows []*row
	for name, callers := range map[string]int{"a script for each call": 1, "bundles, as 256 goroutines send": ceiling.Callers} {
		sent, err := ceiling.Open(ctx, server.Addr, fmt.Sprint("scripts", callers), callers)
		if err != nil {
			return err
		}
		defer sent.Close()
		rows = append(rows, &row{name: name, pair: func() (int64, error) { return sent.Pairs(0) }})
	}
	slices.SortFunc(rows, func(a, b *row) int { return len(a.name) - len(b.name) })
	nothing, err := openNothing(ctx, server.Addr)
	if err != nil {
		return err
	}
	defer nothing.conn.Close()
	rows = append(rows, &row{name: "two scripts that do nothing", pair: nothing.pairs})
	for range rounds {
		for _, r := range rows {
			if err := r.round(ctx, server); err != nil {
				return err
			}
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\tserver CPU for a pair\t\n", binary)
	for _, r := range rows {
		slices.Sort(r.took)
		fmt.Fprintf(table, "%s\t%.2f µs\t\n", r.name, float64(r.took[rounds/2])/float64(time.Microsecond))
	}
	return table.Flush()
}

func (r *row) round(ctx context.Context, server *measure.Server) error {
	before, err := server.Served(ctx)
	if err != nil {
		return err
	}
	var done int64
	for done < each {
		n, err := r.pair()
		if err != nil {
			return err
		}
		done += n
	}
	after, err := server.Served(ctx)
	r.took = append(r.took, (after.CPU-before.CPU)/time.Duration(done))
	return err
}

// nothing sends scripts that do nothing, with as many words as those of a pair have.
type nothing struct {
	conn    net.Conn
	request []byte
	answers []byte
}

func openNothing(ctx context.Context, addr string) (*nothing, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	sha, err := rdb.ScriptLoad(ctx, "return 1").Result()
	if err != nil {
		return nil, err
	}
	const pipelined, keys, args = 64, 2, 4
	words := []string{"evalsha", sha, fmt.Sprint(keys)}
	for i := range keys + args {
		words = append(words, fmt.Sprintf("%036d", i))
	}
	var one []byte
	one = fmt.Appendf(one, "*%d\r\n", len(words))
	for _, w := range words {
		one = fmt.Appendf(one, "$%d\r\n%s\r\n", len(w), w)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	return &nothing{conn, bytes.Repeat(one, 2*pipelined), make([]byte, 2*pipelined*len(":1\r\n"))}, err
}

func (n *nothing) pairs() (int64, error) {
	if _, err := n.conn.Write(n.request); err != nil {
		return 0, err
	}
	for got := 0; got < len(n.answers); {
		more, err := n.conn.Read(n.answers[got:])
		if err != nil {
			return 0, err
		}
		got += more
	}
	return int64(len(n.answers) / len(":1\r\n:1\r\n")), nil
}
