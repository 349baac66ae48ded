// The ledger: how a call counts once, however often it is sent, if nobody owns what it changes.

package engine

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

const (
	// ledgerLife is how long Redis keeps the record of a call after the last call of the same
	// Client on the same name. It is a day by the server's clock, because that clock may be set
	// forward while a call is in doubt.
	ledgerLife = 24 * time.Hour
	// doubtLimit is how long a call is sent again, and how long its undo is sent again after that.
	// It is well within ledgerLife, so that no sending finds the record of an earlier one gone.
	doubtLimit = 5 * time.Minute
	// finishLimit is how long Finish keeps its caller waiting.
	finishLimit = 5 * time.Second
)

// NumberSource returns the source of a script about a whole number: failed.lua, number.lua, whose
// header says what a body finds, and then body.
func NumberSource(body string) string { return UndoingSource(lua("number") + body) }

// UndoingSource returns the source of a script that undoes what it has done when a later command is refused:
// failed.lua and then body.
func UndoingSource(body string) string { return lua("failed") + body }

// OnceSource returns the source of a script about a whole number that counts a call once:
// number.lua, once.lua and then body.
func OnceSource(body string) string { return NumberSource(lua("once") + body) }

// Ledger is the record, in Redis, of this Client's calls on one name. It makes a call count once,
// however often it is sent. It is for calls that nobody owns. For a lock, the owner's field shows
// whether the call ran.
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

// publishPatience is how long a call waits to learn which command publishes. If the masters of a
// cluster do not answer, the call itself must fail and say so.
const publishPatience = time.Second

// Publish returns the command that publishes to a channel. If no master of a cluster has said in
// time which command that is, it returns SPUBLISH, which servers have had since Redis 7. On an
// older server that command fails; the scripts ignore the failure, and waiters find out by their
// polls.
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

// Ledger returns this Client's ledger. Its key begins with prefix.
func (e *Engine) Ledger(prefix string) Ledger {
	return Ledger{engine: e, key: prefix + ":" + e.client}
}

// Run runs the call until it is answered or ctx ends. The Call that it returns is never nil. If it
// is not answered, and may have counted or may still count, the error matches errs.Unknown. If the
// Client closes, the error matches errs.Closed.
func (l Ledger) Run(ctx context.Context, o Once) (*conn.Call, error) {
	if err := l.engine.Begin(); err != nil {
		return new(conn.Call), err
	}
	defer l.engine.Done()
	track := l.engine.tracks.take(l)
	defer track.free()
	call, err := track.run(ctx, o, false)
	if _, unheard := call.Outstanding(); err != nil && unheard {
		err = fmt.Errorf("%w: %w", errs.Unknown, err)
	}
	return call, err
}

// Try is Run for a call that takes something if its status is Done. Unless the caller gets
// that status, undo runs in the background, on the same track and with the same number. It gives
// back what the call took, or keeps the call from ever taking anything.
func (l Ledger) Try(ctx context.Context, o, undo Once) (*conn.Call, error) {
	if err := l.engine.Begin(); err != nil {
		return new(conn.Call), err
	}
	defer l.engine.Done()
	track := l.engine.tracks.take(l)
	call, err := track.run(ctx, o, false)
	_, unheard := call.Outstanding()
	if !unheard || err == nil && call.Status() == conn.Done {
		track.free()
	} else {
		track.settle(undo)
	}
	return call, err
}

// Finish is Run for a call that must not be left undone. It goes on when ctx is cancelled. After
// finishLimit it goes on in the background, and the caller gets an error that matches errs.Unknown.
// make returns the call, given the publish command.
func (l Ledger) Finish(ctx context.Context, make func(publish string) Once) (*conn.Call, error) {
	if l.engine.Begin() == nil {
		defer l.engine.Done()
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	o := make(l.engine.Publish(bounded))
	track := l.engine.tracks.take(l)
	call, err := track.run(bounded, o, true)
	goesOn := false
	if err == nil || bounded.Err() == nil && !errors.Is(err, errs.Closed) {
		track.free() // answered, if only by a refusal
	} else {
		goesOn = track.settle(o)
	}
	// Also if it was refused: an earlier sending may have counted.
	if _, unheard := call.Outstanding(); err != nil && (goesOn || unheard) {
		err = fmt.Errorf("%w: %w", errs.Unknown, err)
	}
	return call, err
}

// tracks hands out the tracks of all ledgers of one Client.
type tracks struct {
	mu    sync.Mutex
	inUse map[string]*trackSet
}

// trackSet records which tracks of one ledger are in use.
type trackSet struct {
	busy  int
	made  int
	spare []int
}

// track is a track of a ledger while one call uses it.
type track struct {
	ledger Ledger
	number int   // the track's number
	call   int64 // the call's number
}

// take hands out a track that no call uses. All calls of the Client take their numbers from one
// counter, so that the numbers grow on every track, also on a track that was forgotten in between.
func (s *tracks) take(l Ledger) track {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		s.inUse = make(map[string]*trackSet)
	}
	set := s.inUse[l.key]
	if set == nil {
		set = new(trackSet)
		s.inUse[l.key] = set
	}
	taken := track{ledger: l, call: l.engine.owners.Add(1)}
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

func (l track) free() {
	s := &l.ledger.engine.tracks
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.inUse[l.ledger.key]
	set.spare = append(set.spare, l.number)
	if set.busy--; set.busy == 0 {
		delete(s.inUse, l.ledger.key)
	}
}

// run runs the call on the track. It gives up when ctx ends, or when the call has been in doubt for
// so long that its record might be gone.
func (l track) run(ctx context.Context, o Once, cleanup bool) (*conn.Call, error) {
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

// settle runs the call on the track in the background, until it is answered or doubtLimit is over.
// It reports false if the Client has closed.
func (l track) settle(o Once) bool {
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

func (l track) once(o Once) *conn.Call {
	keys := append(make([]string, 0, 2+len(o.Keys)), o.Key, l.ledger.key)
	args := append(make([]any, 0, 3+len(o.Args)), l.number, l.call, ledgerLife.Milliseconds())
	return &conn.Call{Script: o.Script, Keys: append(keys, o.Keys...), Args: append(args, o.Args...)}
}
