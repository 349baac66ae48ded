// Package pause keeps in Redis that a name is paused: who has paused it, why, and until when. Those who heed it read the key
// in their own scripts, or ask here.
package pause

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of a pause. Each file opens with its contract.
var (
	beginScript  = conn.NewScript("pause/begin", lua("begin"))
	finishScript = conn.NewScript("pause/finish", lua("finish"), conn.Always)
	lookScript   = conn.NewScript("pause/look", lua("look"), conn.Always, conn.Mixed)
)

// Pause is one pause of a name. The zero Pause is none.
type Pause struct {
	id           string
	By, Because  string
	Since, Until time.Time // on the server's clock
}

// Parse returns the pause whose lines are kept in a key; the zero Pause if there is none.
func Parse(text string) Pause {
	lines := strings.SplitN(text, "\n", 6)
	if text == "" || text[0] == '-' || len(lines) < 5 {
		return Pause{}
	}
	since, _ := strconv.ParseInt(lines[1], 10, 64)
	until, _ := strconv.ParseInt(lines[2], 10, 64)
	return Pause{id: lines[0], By: lines[3], Because: lines[4], Since: time.UnixMicro(since), Until: time.UnixMilli(until)}
}

// Lasts reports whether there is a pause.
func (p Pause) Lasts() bool { return p.id != "" }

// Err returns an error that matches errs.Paused and says who, why and until when; nil if there is no pause.
func (p Pause) Err() error {
	if !p.Lasts() {
		return nil
	}
	text := fmt.Sprintf("by %q until %s", p.By, p.Until.UTC().Format(time.RFC3339))
	if p.Because != "" {
		text += fmt.Sprintf(": %q", p.Because)
	}
	return fmt.Errorf("%w %s", errs.Paused, text)
}

// longest is how many bytes of who and of why are kept.
const longest = 256

// oneLine returns a text as one line, cut if it is too long.
func oneLine(text string) string {
	text = strings.ReplaceAll(text, "\n", " ")
	return strings.ToValidUTF8(text[:min(len(text), longest)], "")
}

// undoLimit is how long a pause is taken back in the background, if Redis does not answer.
const undoLimit = time.Minute

// kept is how long the lines of a pause that has ended are kept: until no request of it can come.
const kept = 2 * conn.MaxWindow

// Begin pauses the name whose pause has that key.
func Begin(ctx context.Context, e *engine.Engine, key string, p Pause) error {
	if err := e.Begin(); err != nil {
		return err
	}
	defer e.Done()
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	id := rand.Text() // no other pause has it
	call := &conn.Call{Script: beginScript, Keys: []string{key},
		Args: []any{id, p.Until.UnixMilli(), oneLine(p.By), oneLine(p.Because)}}
	err := e.Conn.Run(ctx, call)
	if notAfter, unheard := call.Outstanding(); unheard && err != nil {
		e.Settle(notAfter, undoLimit, func(ctx context.Context) (*conn.Call, error) {
			undo := finish(key, id, true)
			return undo, e.Conn.Run(ctx, undo)
		})
	}
	if err == nil && call.Status() != conn.Done {
		err = fmt.Errorf("it would be over by Redis's clock: %w", errs.BadArgument)
	}
	return err
}

// End ends the pause with that key, if there is one.
func End(ctx context.Context, e *engine.Engine, key string) error {
	if err := e.Begin(); err != nil {
		return err
	}
	defer e.Done()
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	for {
		p, err := Look(ctx, e, key)
		if err != nil || !p.Lasts() {
			return err
		}
		call := finish(key, p.id, false)
		if err := e.Conn.Run(ctx, call); err != nil {
			return err
		}
	}
}

func finish(key, id string, undo bool) *conn.Call {
	earlier := "0"
	if undo {
		earlier = "1"
	}
	return &conn.Call{Script: finishScript, Keys: []string{key}, Args: []any{id, kept.Milliseconds(), earlier}, Cleanup: undo}
}

// Look asks whether the name with that key of a pause is paused.
func Look(ctx context.Context, e *engine.Engine, key string) (Pause, error) {
	call := &conn.Call{Script: lookScript, Keys: []string{key}}
	if err := e.Conn.Run(ctx, call); err != nil || call.Status() != conn.Done {
		return Pause{}, err
	}
	return pauseIn(call), nil
}

// Held is what a caller was granted under a name that may be paused.
type Held interface {
	Context(ctx context.Context) context.Context
	Release(ctx context.Context) error
}

// Found returns the pause of the name with that key of a pause, under which l was granted. If there is one, or if Redis
// does not say, l is given back. If the caller does not wait, a pause is an error, and so is no answer within
// engine.TryBound.
func Found(ctx context.Context, e *engine.Engine, key string, l Held, once bool) (Pause, error) {
	looking := l.Context(ctx)
	if once {
		bounded, cancel := engine.Bounded(looking)
		defer cancel()
		looking = bounded
	}
	p, err := Look(looking, e, key)
	if err = errs.Ended(looking, err); err == nil && !p.Lasts() {
		return p, nil
	}
	if err == nil && once {
		err = p.Err()
	}
	released := make(chan error, 1)
	release := func() { released <- l.Release(ctx) }
	if !e.Background(release) {
		release()
	}
	select {
	case failed := <-released:
		if err == nil && failed != nil {
			err = errs.Bare(failed)
		}
	case <-ctx.Done(): // a release goes on for longer
		if err == nil {
			err = fmt.Errorf("%w; %w", p.Err(), ctx.Err())
		}
	}
	return p, err
}

// Wait waits until the name with that key of a pause is not paused. It asks once in line.PollBound. If ctx ends while the
// name is paused, the error matches errs.Paused and ctx's; if Shutdown or Close begins, it is errs.Closed.
func Wait(ctx context.Context, e *engine.Engine, key string, p Pause) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.Draining(), cancel)()
	for p.Lasts() {
		paused := p.Err()
		err := engine.Sleep(waiting, line.PollBound)
		if err == nil {
			p, err = Look(waiting, e, key)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return fmt.Errorf("%w; %w", paused, err)
		case e.Draining().Err() != nil:
			return errs.Closed
		default:
			return err
		}
	}
	return nil
}
