package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheCacheIsRebuiltUnderItsReaders(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "version 5: alone") {
		t.Errorf("output:\n%s", &out)
	}
}
