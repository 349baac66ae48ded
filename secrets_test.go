// Errors, logs, spans and metrics tell no whole owner and no password.

package holdfast_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// transcript is everything that the Clients have told.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *transcript) tell(what string, err error) {
	fmt.Fprintf(s, "%s: %v\n", what, err)
}

func TestNothingSecretIsTold(t *testing.T) {
	t.Parallel()
	const right, wrong = "the-right-password", "the-wrong-password"
	s := redistest.Server(t, "--requirepass", right)
	with := func(password string) *redis.Client {
		return s.Client(t, func(o *redis.Options) { o.Password = password })
	}
	said := new(transcript)
	spans, options := newTold()
	options = append(options, holdfast.WithLogger(slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	a, b, stranger := clienttest.OpenClient(t, with(right), options...), clienttest.OpenClient(t, with(right), options...), clienttest.OpenClient(t, with(wrong), options...)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}

	held, fair := clienttest.Grab(t, a.Mutex("told")), clienttest.Grab(t, a.FairMutex("told fair"))
	owners := []holdfast.Owner{held.Owner(), fair.Owner()}
	_, err := b.Mutex("told").Lock(short())
	said.tell("a wait in vain", err)
	_, err = b.Mutex("told").Attach(short(), mustParse(t, strings.Repeat("0", 8)+held.Owner().String()[8:]))
	said.tell("an owner that holds nothing", err)
	_, err = stranger.Mutex("told").Lock(short())
	said.tell("a wrong password", err)
	if _, err := b.Mutex("told").ForceRelease(t.Context()); err != nil {
		t.Error(err)
	}
	said.tell("an Extend of what is lost", held.Extend(short(), time.Minute))
	said.tell("a Release of what is lost", held.Release(short()))
	s.Kill()
	said.tell("a Release without a server", fair.Release(short()))
	_, err = b.Mutex("told").Lock(short())
	said.tell("a Lock without a server", err)
	for _, c := range []*holdfast.Client{a, b, stranger} {
		said.tell("Close", c.Close())
	}
	spans.tellAll(t, said)

	text := said.String()
	for _, secret := range []string{right, wrong, owners[0].String(), owners[1].String(), owners[0].String()[:36]} {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%.12s… is told: %.300q", secret, text[max(0, at-150):])
		}
	}
	if !strings.Contains(text, owners[0].Short()) {
		t.Errorf("nothing names the owner %s at all:\n%s", owners[0].Short(), text)
	}
}

// mustParse returns an owner from its text.
func mustParse(t *testing.T, text string) holdfast.Owner {
	t.Helper()
	o, err := holdfast.ParseOwner(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// tellAll writes down all spans and metrics.
func (o told) tellAll(t *testing.T, w *transcript) {
	t.Helper()
	var metrics metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &metrics); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, "%+v\n%+v\n", tracetest.SpanStubsFromReadOnlySpans(o.spans.Ended()), metrics)
}
