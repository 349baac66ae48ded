package engine

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	// ledgerLife is how long Redis keeps the record of a call after the last
	// call of the same Client on the same name: a day, by the server's clock, which may
	// be set forward while a call is in doubt.
	ledgerLife = 24 * time.Hour
	// doubtLimit is how long a call is sent again, and then its undo: well within
	// ledgerLife, so that no sending finds the record of an earlier one gone.
	doubtLimit = 5 * time.Minute
	// finishLimit is how long Finish has its caller wait.
	finishLimit = 5 * time.Second
)

//go:embed lua/once.lua
var onceSource string

// OnceSource returns the source of a script that counts a call once: once.lua,
// which says what it finds, and then body.
func OnceSource(body string) string { return onceSource + body }

// Done is the status of a call that did what it was asked for.
const Done = 1

// Ledger is the record, in Redis, of this Client's calls on one name, by which a
// call counts once however often it is sent. It is for calls that nobody owns:
// of a lock the owner's field tells whether the call ran.
type Ledger struct {
	engine *Engine
	key    string
}

// Once is a call that counts once. Its script is made by OnceSource.
type Once struct {
	Script *conn.Script
	Key    string   // KEYS[1]; the ledger is KEYS[2]
	Keys   []string // KEYS[3] and on
	Args   []any    // ARGV[5] and on
}

// publishPatience is how long a call waits to know how releases are told. A cluster whose
// masters do not answer must not keep it from saying so.
const publishPatience = time.Second

// Publish returns the command that tells a channel's subscribers. Where no master of a
// cluster has said so in time, it is SPUBLISH, which servers have had since Redis 7: if
// they are older, the scripts pass over that it fails, and the waiters' polls must do.
func (e *Engine) Publish(ctx context.Context) string {
	if known := e.Conn.KnownPublishCommand(); known != "" {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	command, err := e.Conn.PublishCommand(ctx)
	if err != nil {
		return "SPUBLISH"
	}
	return command
}

// Ledger returns the ledger whose key begins so.
func (e *Engine) Ledger(prefix string) Ledger {
	return Ledger{engine: e, key: prefix + ":" + e.client}
}

// Run runs the call until it is answered or ctx ends; the Call it returns is never
// nil. If it is not answered and
// may have counted, or may still count, the error matches errs.Unknown.
func (l Ledger) Run(ctx context.Context, o Once) (*conn.Call, error) {
	if err := l.engine.Begin(); err != nil {
		return new(conn.Call), err
	}
	defer l.engine.Done()
	lane := l.engine.lanes.take(l)
	defer lane.free()
	call, err := lane.run(ctx, o, false)
	if _, unheard := call.Outstanding(); err != nil && unheard {
		err = fmt.Errorf("%w: %w", errs.Unknown, err)
	}
	return call, err
}

// Try is Run for a call that takes something when its status is Done. Unless its
// caller hears of that, undo, on the same lane and with the same number, gives
// back in the background what the call took, or has it never take anything.
func (l Ledger) Try(ctx context.Context, o, undo Once) (*conn.Call, error) {
	if err := l.engine.Begin(); err != nil {
		return new(conn.Call), err
	}
	defer l.engine.Done()
	lane := l.engine.lanes.take(l)
	call, err := lane.run(ctx, o, false)
	_, unheard := call.Outstanding()
	if !unheard || err == nil && call.Status() == Done {
		lane.free()
	} else {
		lane.settle(undo)
	}
	return call, err
}

// Finish is Run for a call that must not be left undone. It goes on when ctx is
// cancelled, and after finishLimit in the background, where the caller has an
// error that matches errs.Unknown. make is given the publish command.
func (l Ledger) Finish(ctx context.Context, make func(publish string) Once) (*conn.Call, error) {
	if l.engine.Begin() == nil {
		defer l.engine.Done()
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	o := make(l.engine.Publish(bounded))
	lane := l.engine.lanes.take(l)
	call, err := lane.run(bounded, o, true)
	goesOn := false
	if err == nil || bounded.Err() == nil && !errors.Is(err, errs.Closed) {
		lane.free() // answered, if only by a refusal
	} else {
		goesOn = lane.settle(o)
	}
	// Also where it was refused: an earlier sending may have counted.
	if _, unheard := call.Outstanding(); err != nil && (goesOn || unheard) {
		err = fmt.Errorf("%w: %w", errs.Unknown, err)
	}
	return call, err
}

// lanes hands out the lanes of all ledgers.
type lanes struct {
	mu    sync.Mutex
	inUse map[string]*laneSet
}

// laneSet is which lanes of one ledger are in use.
type laneSet struct {
	busy  int
	made  int
	spare []int
}

// lane is a lane of a ledger in the hands of one call.
type lane struct {
	ledger Ledger
	number int   // the lane's
	call   int64 // the call's
}

// take hands out a lane that no call uses. The calls' numbers come from one
// counter for the whole Client, so that they grow on every lane, also on one that
// was forgotten meanwhile.
func (s *lanes) take(l Ledger) lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		s.inUse = make(map[string]*laneSet)
	}
	set := s.inUse[l.key]
	if set == nil {
		set = new(laneSet)
		s.inUse[l.key] = set
	}
	taken := lane{ledger: l, call: l.engine.owners.Add(1)}
	if n := len(set.spare); n > 0 {
		taken.number = set.spare[n-1]
		set.spare = set.spare[:n-1]
	} else {
		taken.number = set.made
		set.made++
	}
	set.busy++
	return taken
}

// free gives the lane back.
func (l lane) free() {
	s := &l.ledger.engine.lanes
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.inUse[l.ledger.key]
	set.spare = append(set.spare, l.number)
	if set.busy--; set.busy == 0 {
		delete(s.inUse, l.ledger.key)
	}
}

// run runs the call on the lane. It gives up when ctx ends, or when the call has
// been in doubt for so long that its record might be gone.
func (l lane) run(ctx context.Context, o Once, cleanup bool) (*conn.Call, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, doubtLimit)
		call := l.once(o)
		call.Cleanup = cleanup
		err := l.ledger.engine.Conn.Run(bounded, call)
		over := bounded.Err() != nil && ctx.Err() == nil
		cancel()
		if _, unheard := call.Outstanding(); err == nil || unheard || !over {
			return call, err
		}
	}
}

// settle runs the call on the lane in the background, until it is answered. It
// reports false where the Client has closed.
func (l lane) settle(o Once) bool {
	e := l.ledger.engine
	started := e.Background(func() {
		defer l.free()
		ctx, cancel := context.WithTimeout(context.Background(), doubtLimit)
		defer cancel()
		call := l.once(o)
		call.Cleanup = true
		if err := e.Conn.Run(ctx, call); err != nil {
			e.Log.Warn("holdfast: gave up a call; whether it counted is not known", "script", o.Script.Name(), "error", err)
		}
	})
	if !started {
		l.free()
	}
	return started
}

// once is the call as the lane sends it.
func (l lane) once(o Once) *conn.Call {
	keys := append(make([]string, 0, 2+len(o.Keys)), o.Key, l.ledger.key)
	args := append(make([]any, 0, 3+len(o.Args)), l.number, l.call, ledgerLife.Milliseconds())
	return &conn.Call{Script: o.Script, Keys: append(keys, o.Keys...), Args: append(args, o.Args...)}
}
