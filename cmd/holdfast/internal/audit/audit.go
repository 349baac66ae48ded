// Package audit notes releases by force in Redis, for a day, beside the name that was released: who has taken what from
// whom. The command and the console write it, and both show it.
package audit

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Kept is how long a record is kept.
const Kept = 24 * time.Hour

// most is how many records of one name are kept.
const most = 10

// Record is one release by force. Its texts come from other programs: show them by package view.
type Record struct {
	At    time.Time `json:"at"`    // on the server's clock
	By    string    `json:"by"`    // who has done it: user@host
	Where string    `json:"where"` // by what, and from where
	From  []string  `json:"from"`  // who held it; without what it could be released by
}

//go:embed note.lua
var noteText string

var note = redis.NewScript(noteText)

// Write notes a release. An error that matches ErrDenied says that the user may not.
func Write(ctx context.Context, rdb redis.UniversalClient, space keys.Space, name string, r Record) error {
	key, err := space.ForForced(space.At(name))
	if err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return allowed(note.Run(ctx, rdb, []string{key}, line, Kept.Milliseconds(), most).Err())
}

// Read returns what is noted of a name, the latest first: what is younger than a day at that time. An error that
// matches ErrDenied says that the user may not read it.
func Read(ctx context.Context, rdb redis.UniversalClient, space keys.Space, name string, at time.Time) ([]Record, error) {
	key, err := space.ForForced(space.At(name))
	if err != nil {
		return nil, nil //nolint:nilerr // a name that can be none was never released
	}
	text, err := rdb.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, allowed(err)
	}
	var all []Record
	for line := range strings.SplitSeq(text, "\n") {
		var r Record
		if json.Unmarshal([]byte(line), &r) == nil && at.Sub(r.At) < Kept {
			all = append(all, r)
		}
	}
	return all, nil
}

// allowed returns what Redis does not allow as an error of the library.
func allowed(err error) error {
	if redis.HasErrorPrefix(err, "NOPERM") {
		return fmt.Errorf("%w: %w", holdfast.ErrDenied, err)
	}
	return err
}
