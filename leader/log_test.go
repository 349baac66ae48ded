package leader_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing/synctest"
)

// logged keeps what a Client has logged.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *logged) text() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *logged) has(text string) bool { return strings.Contains(l.text(), text) }

func (l *logged) count(text string) int { return strings.Count(l.text(), text) }
