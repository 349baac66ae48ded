// The work of one key as package hold sees it.

package once

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

const (
	kind = "once" // for errors, spans and metrics

	// tokenLife is how long the token of a key is kept after its grant. A result that is kept for at
	// least as long has the token beside it, and the token's own key goes.
	tokenLife = 24 * time.Hour

	// inMessage is the greatest size of a result, in bytes, that the message to the waiters carries.
	// Each waiting process gets a copy. For a larger one they ask.
	inMessage = 16 << 10
)

// result is what the work of a key has come to. Nobody changes it.
type result struct {
	failed bool
	data   string // the bytes of the Codec; if the work has failed, the text of its error
}

func (r *result) field() string {
	if r.failed {
		return "error"
	}
	return "result"
}

// conclusion is a result that its owner is to write.
type conclusion struct {
	*result
	token int64
	keep  time.Duration
}

// resource is the work of one key, for one call. The calls of hold.Concluding and the caller share
// running and found: they are made by the caller's goroutine.
type resource struct {
	name     string
	at       keys.Once
	record   lockhash.Hash
	payload  string
	replicas int

	running int64   // the token of the work under way, as the last refusal said
	busy    func()  // called when there is work under way; nil: nobody wants to know
	found   *result // what a refusal or a message has brought

	conclusion atomic.Pointer[conclusion] // what a release is to write; nil: nothing
}

var (
	_ hold.Concluding = (*resource)(nil)
	_ hold.Grouped    = (*resource)(nil)
)

func (r *resource) Kind() string { return kind }
func (r *resource) Name() string { return r.name }
func (r *resource) Key() string  { return r.at.Record }

// Describe names a line for each fingerprint: a waiter whose payload is another one must ask, to learn
// that.
func (r *resource) Describe(w *line.Want) {
	w.Key, w.Channel = r.at.Record+" "+r.payload, r.at.Channel
}

func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: askScript,
		Keys:   []string{r.at.Record, r.at.Token},
		Args:   []any{owner.String(), length.Milliseconds(), tokenLife.Milliseconds(), r.payload},
	}
}

func (r *resource) Recount(owner hold.Owner, leases int, length time.Duration) *conn.Call {
	return r.record.Recount(owner, leases, length)
}

func (r *resource) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return r.record.Renew(owner, length)
}

// RenewMany implements hold.Grouped.
func (r *resource) RenewMany() *conn.Script { return r.record.RenewMany() }

// Release writes the result, if there is one, and gives the work up otherwise.
func (r *resource) Release(owner hold.Owner, publish string) *conn.Call {
	c := r.conclusion.Load()
	if c == nil {
		return &conn.Call{
			Script: releaseScript,
			Keys:   []string{r.at.Record},
			Args:   []any{owner.String(), publish, r.at.Channel},
		}
	}
	call := &conn.Call{
		Script:   completeScript,
		Keys:     []string{r.at.Record},
		Args:     []any{owner.String(), c.token, c.field(), c.data, c.keep.Milliseconds(), inMessage, publish, r.at.Channel},
		Replicas: r.replicas,
	}
	if c.keep >= tokenLife {
		call.Keys, call.Enough = append(call.Keys, r.at.Token), 1
	}
	return call
}

// Concludes implements hold.Concluding.
func (r *resource) Concludes() bool { return r.conclusion.Load() != nil }

// Refused implements hold.Concluding.
func (r *resource) Refused(call *conn.Call) error {
	switch why, running, data := refusalIn(call); why {
	case underWay:
		r.running = running
		if r.busy != nil {
			r.busy()
		}
		return nil
	case done, failed:
		r.found = &result{failed: why == failed, data: data}
		return hold.Concluded
	default:
		return errs.Mismatch
	}
}

// Heard implements line.Hearer. A message is believed if it is about the work that was under way
// when this call last asked. Another may be older than this call, such as one that was late, or be
// about another payload.
func (r *resource) Heard(message string) error {
	words := strings.SplitN(message, " ", 3)
	if len(words) < 3 || r.running == 0 || words[0] != strconv.FormatInt(r.running, 10) {
		return nil
	}
	r.found = &result{failed: words[1] == "error", data: words[2]}
	return hold.Concluded
}
