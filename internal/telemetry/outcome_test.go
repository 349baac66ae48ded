// Errors become outcomes and classes.

package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"syscall"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

func TestOutcomeOf(t *testing.T) {
	const success = telemetry.OutcomeAcquired
	for _, tc := range []struct {
		name string
		err  error
		want telemetry.Outcome
	}{
		{"nil", nil, success},
		{"a try on a held lock", fmt.Errorf("rlock: lock %q: %w", "a", errs.Busy), telemetry.OutcomeBusy},
		{"a wait that ran out", errors.Join(errs.Busy, context.DeadlineExceeded), telemetry.OutcomeTimeout},
		{"a wait cancelled", errors.Join(errs.Busy, context.Canceled), telemetry.OutcomeCancelled},
		{"a request cancelled before any answer", context.Canceled, telemetry.OutcomeCancelled},
		{"no answer before the deadline", context.DeadlineExceeded, telemetry.OutcomeError},
		{"closed while waiting", errors.Join(errs.Busy, errs.Closed), telemetry.OutcomeClosed},
		{"lost", fmt.Errorf("rlock: release: %w", errs.Lost), telemetry.OutcomeLost},
		{"through a lease that had expired", errs.Expired, telemetry.OutcomeLost},
		{"held too long", errs.MaxHold, telemetry.OutcomeLost},
		{"through a lease released before", errs.Released, telemetry.OutcomeError},
		{"anything else", io.EOF, telemetry.OutcomeError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := telemetry.OutcomeOf(tc.err, success); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestASecondReleaseIsNoFailure(t *testing.T) {
	err := fmt.Errorf("rlock: release %q: %w", "a", errs.Released)
	if got := telemetry.OutcomeOf(err, telemetry.OutcomeReleased); got != telemetry.OutcomeRepeated {
		t.Errorf("got %v, want %v", got, telemetry.OutcomeRepeated)
	}
}

func TestReleasingAFixedLeaseThatIsOverIsNoFailure(t *testing.T) {
	err := fmt.Errorf("rlock: release %q: %w", "a", errs.Expired)
	if got := telemetry.OutcomeOf(err, telemetry.OutcomeReleased); got != telemetry.OutcomeExpired {
		t.Errorf("got %v, want %v", got, telemetry.OutcomeExpired)
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
	for _, o := range []telemetry.Outcome{0, telemetry.OutcomeError + 1, 255} {
		if o.String() != "unknown" {
			t.Errorf("outcome %d is called %q", o, o)
		}
	}
}

// reply is an error like those that go-redis makes of a server's error replies.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestErrorType(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"one of ours, wrapped", fmt.Errorf("rlock: lock %q: %w", "a", errs.WrongType), "wrong_type"},
		{"ours says more than the reply", errors.Join(reply("OOM command not allowed"), errs.OutOfMemory), "out_of_memory"},
		{"the lease says more than the fault", errors.Join(refused, errs.Lost), "lost"},
		{"code of a reply", fmt.Errorf("rlock: %w", reply("LOADING Redis is loading")), "LOADING"},
		{"reply of one word", reply("ERR"), "ERR"},
		{"reply without a code", reply("orders:42 is locked"), "_OTHER"},
		{"reply with a long word", reply("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA no"), "_OTHER"},
		{"empty reply", reply(""), "_OTHER"},
		{"refused", refused, "network"},
		{"closed connection", fmt.Errorf("read: %w", io.EOF), "network"},
		{"closed by us", net.ErrClosed, "network"},
		{"no answer in time", context.DeadlineExceeded, "timeout"},
		{"anything else", errors.New("tls: bad certificate"), "_OTHER"},
		{"no error at all", nil, "_OTHER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := recordedErrorType(t, tc.err); got != tc.want {
				t.Errorf("error.type = %q, want %q", got, tc.want)
			}
		})
	}
}

func recordedErrorType(t *testing.T, err error) any {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tel := newTelemetry(t, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), nil)
	_, a := tel.Acquire(t.Context(), kind, "orders:42")
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeError, Err: err})
	return attributes(spans.Ended()[0])["error.type"]
}

// If a sentinel is added to package errs without a class here, telemetry reports it as "_OTHER".
// This test then fails.
func TestEverySentinelHasAClass(t *testing.T) {
	classified := map[string]error{
		"Busy": errs.Busy, "Lost": errs.Lost, "Expired": errs.Expired, "Released": errs.Released, "MaxHold": errs.MaxHold,
		"Closed": errs.Closed, "WrongType": errs.WrongType, "OutOfMemory": errs.OutOfMemory,
		"Denied": errs.Denied, "BadArgument": errs.BadArgument,
		"Upgrade":   errs.Upgrade,
		"NoPermits": errs.NoPermits, "Deleted": errs.Deleted, "Unknown": errs.Unknown,
		"NotReplicated": errs.NotReplicated, "NoQuorum": errs.NoQuorum,
		"Unavailable": errs.Unavailable,
		"Mismatch":    errs.Mismatch, "TooLarge": errs.TooLarge, "WorkFailed": errs.WorkFailed,
		"NoLeader": errs.NoLeader, "Resigned": errs.Resigned,
		"Broken": errs.Broken, "Parties": errs.Parties,
	}
	for _, name := range sentinels(t) {
		err, ok := classified[name]
		if !ok {
			t.Errorf("errs.%s is not known here: add it to errorTypes, to this test and to docs/observability.md", name)
			continue
		}
		if got := recordedErrorType(t, err); got == "_OTHER" {
			t.Errorf("errs.%s has no error.type", name)
		}
	}
}

// sentinels reads the names of the variables of package errs from its source.
func sentinels(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../errs/errs.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			for _, ident := range spec.(*ast.ValueSpec).Names {
				if ident.IsExported() {
					names = append(names, ident.Name)
				}
			}
		}
	}
	return names
}
