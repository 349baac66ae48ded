// Inventory is a small service that reserves units of things, and the example for testing a program that uses
// Holdfast: inventory_test.go tests it in virtual time, without a server, with losses and a failover.
//
//	go run ./examples/inventory
//	go test ./examples/inventory
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/fence"
)

func main() { embedded.Main(run) }

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	client := holdfast.New(rdb)
	defer client.Close()
	ledger := NewLedger(map[string]int{"bolt": 100})
	inventory := Inventory{Locks: func(thing string) holdfast.Locker { return client.Mutex("inventory:" + thing) }, Ledger: ledger}
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() { _ = inventory.Reserve(ctx, "bolt", 6) })
	}
	callers.Wait()
	fmt.Fprintf(out, "20 want 6 of 100 bolts: %d are left\n", ledger.Left("bolt"))
	return nil
}

// ErrSoldOut says that fewer units are there than are wanted.
var ErrSoldOut = errors.New("sold out")

// Inventory reserves units. Any number of processes may, for the same Ledger.
type Inventory struct {
	Locks  func(thing string) holdfast.Locker
	Ledger *Ledger

	between func(l *holdfast.Lease) // for tests: what may happen between the read and the write
}

// Reserve takes n units of a thing, under its lock. It shows its token before it reads. So if it loses the lock in
// between, and the next holder reads what it has read, the ledger refuses its write, whether or not it knows.
func (i Inventory) Reserve(ctx context.Context, thing string, n int) error {
	l, err := i.Locks(thing).Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Release(context.WithoutCancel(ctx))
	left, err := i.Ledger.Read(ctx, thing, l.Token())
	if err != nil {
		return err
	}
	if left < n {
		return ErrSoldOut
	}
	if i.between != nil {
		i.between(l)
	}
	return i.Ledger.Write(thing, left-n, l.Token())
}

// Ledger is the stock, as a database would keep it. Its fence refuses the writes of former holders.
type Ledger struct {
	fence fence.Guard
	mu    sync.Mutex // guards what follows
	left  map[string]int
}

// NewLedger returns a Ledger with that stock.
func NewLedger(left map[string]int) *Ledger { return &Ledger{left: left} }

// Left returns how many units of a thing are there.
func (l *Ledger) Left(thing string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left[thing]
}

// Read is Left for a holder that is going to write. After it the ledger refuses the writes of earlier holders. If a
// later holder has been here already, the error matches fence.ErrStale.
func (l *Ledger) Read(ctx context.Context, thing string, token int64) (int, error) {
	if err := l.fence.Pass(ctx, thing, token); err != nil {
		return 0, err
	}
	return l.Left(thing), nil
}

// Write sets how many units of a thing are there, unless a holder with a greater token has read or written that:
// then the error matches fence.ErrStale.
func (l *Ledger) Write(thing string, left int, token int64) error {
	return l.fence.Do(thing, token, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.left[thing] = left
		return nil
	})
}
