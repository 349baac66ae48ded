// Errors become outcomes and classes.

package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// An error becomes the same outcome of an acquisition and of a release, but for three: a second release, and
// that of a fixed lease which is over, are no failures, though an acquisition through such leases is.
func TestOutcomeOf(t *testing.T) {
	const acquired, released = telemetry.OutcomeAcquired, telemetry.OutcomeReleased
	for _, tc := range []struct {
		name           string
		err            error
		ofLock, ofFree telemetry.Outcome
	}{
		{"nil", nil, acquired, released},
		{"a try on a held lock", fmt.Errorf("rlock: lock %q: %w", "a", errs.Busy), telemetry.OutcomeBusy, 0},
		{"a wait that ran out", errors.Join(errs.Busy, context.DeadlineExceeded), telemetry.OutcomeTimeout, 0},
		{"a wait cancelled", errors.Join(errs.Busy, context.Canceled), telemetry.OutcomeCancelled, 0},
		{"a request cancelled before any answer", context.Canceled, telemetry.OutcomeCancelled, 0},
		{"no answer before the deadline", context.DeadlineExceeded, telemetry.OutcomeError, 0},
		{"closed while waiting", errors.Join(errs.Busy, errs.Closed), telemetry.OutcomeClosed, 0},
		{"lost", fmt.Errorf("rlock: release: %w", errs.Lost), telemetry.OutcomeLost, telemetry.OutcomeLost},
		{"through a lease that had expired", fmt.Errorf("rlock: %w", errs.Expired), telemetry.OutcomeLost, telemetry.OutcomeExpired},
		{"held too long", errs.MaxHold, telemetry.OutcomeLost, telemetry.OutcomeLost},
		{"through a lease released before", fmt.Errorf("rlock: %w", errs.Released), telemetry.OutcomeError, telemetry.OutcomeRepeated},
		{"anything else", io.EOF, telemetry.OutcomeError, telemetry.OutcomeError},
	} {
		if got := telemetry.OutcomeOf(tc.err, acquired); got != tc.ofLock {
			t.Errorf("%s: a lock %v, want %v", tc.name, got, tc.ofLock)
		}
		if got := telemetry.OutcomeOf(tc.err, released); tc.ofFree != 0 && got != tc.ofFree {
			t.Errorf("%s: a release %v, want %v", tc.name, got, tc.ofFree)
		}
	}
}

func TestEveryOutcomeHasItsOwnWord(t *testing.T) {
	seen := make(map[string]telemetry.Outcome)
	for o := telemetry.OutcomeAcquired; o <= telemetry.OutcomeError; o++ {
		word := o.String()
		if other, ok := seen[word]; ok || word == "unknown" {
			t.Errorf("outcome %d is called %q, as is %d", o, word, other)
		}
		seen[word] = o
	}
	redistest.Equal(t, telemetry.Outcome(0).String(), "unknown", "no outcome is called %q")
}

// reply is an error like those that go-redis makes of a server's error replies.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// It is a decision which outcomes count as failures: these have an error.type and a status. This test pins each outcome.
func TestOnlyFailuresHaveATypeAndAStatus(t *testing.T) {
	const failed = telemetry.OutcomeError
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		name    string
		outcome telemetry.Outcome
		err     error
		want    any
	}{
		{"acquired", telemetry.OutcomeAcquired, nil, nil},
		{"busy", telemetry.OutcomeBusy, errs.Busy, nil},
		{"timeout", telemetry.OutcomeTimeout, context.DeadlineExceeded, nil},
		{"cancelled", telemetry.OutcomeCancelled, context.Canceled, nil},
		{"closed", telemetry.OutcomeClosed, errs.Closed, nil},
		{"repeated", telemetry.OutcomeRepeated, errs.Released, nil},
		{"lost", telemetry.OutcomeLost, errs.Lost, "lost"},
		{"one of ours, wrapped", failed, fmt.Errorf("rlock: lock %q: %w", "a", errs.WrongType), "wrong_type"},
		{"ours says more than the reply", failed, errors.Join(reply("OOM command not allowed"), errs.OutOfMemory), "out_of_memory"},
		{"the lease says more than the fault", failed, errors.Join(refused, errs.Lost), "lost"},
		{"code of a reply", failed, fmt.Errorf("rlock: %w", reply("LOADING Redis is loading")), "LOADING"},
		{"reply of one word", failed, reply("ERR"), "ERR"},
		{"reply without a code", failed, reply("orders:42 is locked"), "_OTHER"},
		{"reply with a long word", failed, reply("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA no"), "_OTHER"},
		{"empty reply", failed, reply(""), "_OTHER"},
		{"refused", failed, refused, "network"},
		{"closed connection", failed, fmt.Errorf("read: %w", io.EOF), "network"},
		{"closed by us", failed, net.ErrClosed, "network"},
		{"no answer in time", failed, context.DeadlineExceeded, "timeout"},
		{"anything else", failed, errors.New("tls: bad certificate"), "_OTHER"},
		{"no error at all", failed, nil, "_OTHER"},
	} {
		o := observe(t)
		_, a := o.Acquire(t.Context(), kind, "orders:42")
		a.End(telemetry.Acquired{Outcome: tc.outcome, Err: tc.err})
		span := o.only(t)
		status := sdktrace.Status{}
		if tc.want != nil {
			status.Code = codes.Error
			if tc.err != nil {
				status.Description = tc.err.Error()
			}
		}
		if got := attributes(span)["error.type"]; got != tc.want || span.Status() != status {
			t.Errorf("%s: error.type = %v, want %v; status %+v, want %+v", tc.name, got, tc.want, span.Status(), status)
		}
	}
}

// If a sentinel is added to package errs without a class, telemetry reports it as "_OTHER".
func TestEverySentinelHasAClass(t *testing.T) {
	classes, err := os.ReadFile("errortype.go")
	redistest.Must(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "../errs/errs.go", nil, 0)
	redistest.Must(t, err)
	found := 0
	for name, object := range file.Scope.Objects {
		if object.Kind != ast.Var || !ast.IsExported(name) {
			continue
		}
		if found++; !bytes.Contains(classes, []byte("{errs."+name+", \"")) {
			t.Errorf("errs.%s has no class: add it to errorTypes and to docs/observability.md", name)
		}
	}
	if found < 20 {
		t.Errorf("only %d sentinels were found", found)
	}
}
