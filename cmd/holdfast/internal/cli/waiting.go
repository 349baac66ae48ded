// What a command says while it waits for a lock: who holds it, and whether Redis answers.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// sight says who holds the names that a lock is made of.
type sight func(ctx context.Context) ([]holdfast.Inspection, error)

// sightOf returns the sight of these names.
func sightOf(client *holdfast.Client, names ...string) sight {
	return func(ctx context.Context) (all []holdfast.Inspection, err error) {
		for _, name := range names {
			i, err := client.Inspect(ctx, name)
			if err != nil {
				return nil, err
			}
			all = append(all, i)
		}
		return all, nil
	}
}

// When a command that waits looks who holds the lock. A look is one or two commands.
const (
	firstSight = time.Second
	nextSight  = 2 * time.Second
)

// sayWhileWaiting says who holds the lock if the wait is not short, and then when Redis stops to answer, and begins
// again. stop ends it, and must be called.
func (a *app) sayWhileWaiting(ctx context.Context, see sight) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		known, silent := false, false
		for pause := firstSight; ; pause = nextSight {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			held, err := a.holders(ctx, see)
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, holdfast.ErrUnavailable):
				if !silent {
					a.say("still waiting, but Redis does not answer: %v", err)
				}
				silent = true
				continue
			case silent:
				a.say("Redis answers again")
			case known:
				continue
			}
			switch {
			case err != nil:
				a.say("waiting; who holds it cannot be seen: %v", err)
			case held != "":
				a.say("waiting; %s", held)
			}
			known, silent = known || err != nil || held != "", false
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// mostHolders is how many holders of a name a line names.
const mostHolders = 3

// holders returns who holds the lock, "" if nobody does.
func (a *app) holders(ctx context.Context, see sight) (string, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	all, err := see(ctx)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, i := range all {
		if len(i.Holders) == 0 {
			continue
		}
		named := slices.Clone(i.Holders[:min(len(i.Holders), mostHolders)])
		text := view.Name(i.Name) + " is held by " + heldBy(i, named)
		if more := len(i.Holders) - len(named); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		texts = append(texts, text+": see holdfast inspect "+view.Name(i.Name))
	}
	return strings.Join(texts, "; "), nil
}

// named adds to the error of a lock that was found held by whom it is held now.
func (a *app) named(ctx context.Context, err error, see sight) error {
	if code, _ := codeOf(err); code != codeBusy || ctx.Err() != nil {
		return err
	}
	held, seen := a.holders(ctx, see)
	if seen != nil || held == "" {
		return err // that it was busy is the answer
	}
	if busy, ok := err.(*holdfast.BusyError); ok {
		err = busy.Unwrap() // without what it knows of the holder
	}
	return fmt.Errorf("%w; %s", err, held)
}
