// Logs of tests: one that a test reads while others write it, and one in which no Client's id may stand.

package redistest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
)

// Log is an io.Writer, for a slog.Handler. It may be read at any time.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

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
