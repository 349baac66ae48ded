package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{"granted by 5 of 5", "granted by 3 of 5, with a greater token: true", "the holder is told after", "nobody is granted it now: true", "one is back"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("nothing says %q:\n%s", line, out.String())
		}
	}
}
