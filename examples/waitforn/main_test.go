package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// safe is a buffer that more than one goroutine writes to.
type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func TestRun(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	rdb, closeAll, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out safe
	if err := run(ctx, rdb, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.buf.String())
	}
	if !strings.Contains(out.buf.String(), "all are ready: deploy") {
		t.Errorf("it says\n%s", out.buf.String())
	}
}
