package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"booked all three", "held by another", "not booked", "room held: false, driver held: false"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("nothing says %q:\n%s", line, out.String())
		}
	}
}
