// No log line of a test's Client may contain a Client's id.

package redistest

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
)

// wholeID is the id of a Client of Holdfast: a UUID of version 8. Anyone who knows one can take
// over what that Client holds.
var wholeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// Watched returns a logger for the Clients of tests. It prints nothing. If a line contains a
// whole id, [Main] fails the package.
func Watched() *slog.Logger { return slog.New(watch{}) }

// told is the last line that contained an id.
var told struct {
	mu   sync.Mutex
	line string
}

// secretTold returns an error if a line has contained an id.
func secretTold() error {
	told.mu.Lock()
	defer told.mu.Unlock()
	if told.line == "" {
		return nil
	}
	return fmt.Errorf("a log line tells the whole id of a Client: %s", told.line)
}

// watch is the handler.
type watch struct{}

func (watch) Enabled(context.Context, slog.Level) bool { return true }
func (w watch) WithAttrs([]slog.Attr) slog.Handler     { return w }
func (w watch) WithGroup(string) slog.Handler          { return w }

func (watch) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	if wholeID.MatchString(line) {
		told.mu.Lock()
		defer told.mu.Unlock()
		told.line = line
	}
	return nil
}
