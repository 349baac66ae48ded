package errs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestAnErrorHasOnePrefixAndIsOneLine(t *testing.T) {
	inner := errs.Wrap(`lock mutex "a"`, errs.Busy)
	joined := errors.Join(inner, errs.Wrap(`lock mutex "b"`, errs.Lost))
	for _, tc := range []struct {
		err  error
		want string
	}{
		{inner, `holdfast: lock mutex "a": held by another`},
		{errs.Wrap("lock all of 2", inner), `holdfast: lock all of 2: lock mutex "a": held by another`},
		{errs.Wrap("lock all of 2", fmt.Errorf("in vain: %w", inner)), `holdfast: lock all of 2: in vain: lock mutex "a": held by another`},
		{errs.Wrap("release all of 2", joined), `holdfast: release all of 2: lock mutex "a": held by another; lock mutex "b": lease lost`},
	} {
		redistest.Equal(t, tc.err.Error(), tc.want, "%s\nwant\n%s", tc.want)
		if !errors.Is(tc.err, errs.Busy) {
			t.Errorf("%v does not match Busy", tc.err)
		}
	}
}

func TestWhatAnErrorIsAboutIsToldOnce(t *testing.T) {
	lost := errs.Call("lease on", "leader", "a", errs.Lost)
	for _, tc := range []struct {
		kind, name string
		want       string
	}{
		{"leader", "a", "lease lost"},
		{"leader", "b", `holdfast: lease on leader "a": lease lost`},
		{"mutex", "a", `holdfast: lease on leader "a": lease lost`},
	} {
		if got := errs.Within(tc.kind, tc.name, lost); got.Error() != tc.want || !errors.Is(got, errs.Lost) {
			t.Errorf("in an error about %s %s it is %q, want %q", tc.kind, tc.name, got, tc.want)
		}
	}
}

func TestAnEndedWaitMatchesTheCauseOfItsContext(t *testing.T) {
	shutdown := errors.New("the program shuts down")
	ctx, cancel := context.WithCancelCause(t.Context())
	refused := errors.New("refused")
	redistest.Equal(t, errs.Ended(ctx, refused), refused, "before the end: %v")
	cancel(shutdown)
	err := errs.Ended(ctx, fmt.Errorf("%w: %w", errs.Busy, ctx.Err()))
	for _, want := range []error{errs.Busy, context.Canceled, shutdown} {
		if !errors.Is(err, want) {
			t.Errorf("%v does not match %v", err, want)
		}
	}
	redistest.Equal(t, errs.Ended(ctx, err), err, "the cause is told twice: %v")
	redistest.Equal(t, errs.Ended(ctx, refused), refused, "what ctx did not end: %v")
	if err := errs.Ended(ctx, nil); err != nil {
		t.Errorf("what did not fail: %v", err)
	}
}

func TestAnExpiredLeaseIsALostOne(t *testing.T) {
	if !errors.Is(errs.Expired, errs.Lost) || errors.Is(errs.Lost, errs.Expired) {
		t.Error("Expired must match Lost, and Lost must not match Expired")
	}
}

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"orders:42":              `"orders:42"`,
		"":                       `""`,
		"a\nb\x00":               `"a\nb\x00"`,
		strings.Repeat("x", 64):  `"` + strings.Repeat("x", 64) + `"`,
		strings.Repeat("x", 65):  `"` + strings.Repeat("x", 64) + `"… (65 bytes)`,
		strings.Repeat("x", 1e6): `"` + strings.Repeat("x", 64) + `"… (1000000 bytes)`,
	} {
		redistest.Equal(t, errs.Quote(name), want, "%s, want %s (%.80q)", want, name)
	}
}
