package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	rdb, closeAll, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, rdb, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	for _, line := range []string{"alarm: forgotten is held by ", "since it was granted", "alarm: hanging is held by ", "since it was first seen", "forgotten: mutex, held by [", "forgotten is free again"} {
		if !strings.Contains(text, line) {
			t.Errorf("it does not say %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "quick") {
		t.Errorf("an alarm for a lock that was released:\n%s", text)
	}
}
