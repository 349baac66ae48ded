package cli

import (
	"strings"
	"testing"
)

// A password that is not escaped makes no URL, or another one than was meant. No part of it is printed, whatever
// character it has, and however the URL is read.
func TestNoPartOfAPasswordIsPrinted(t *testing.T) {
	for _, scheme := range []string{"redis", "rediss+cluster", "redis+sentinel"} {
		if _, err := dial("app:Zm9v@127.0.0.1:6379"); err == nil || strings.Contains(err.Error(), "Zm9v") {
			t.Errorf("without a scheme: %v", err)
		}
		for _, user := range []string{"", "app"} {
			for _, first := range []string{"Zm9v", "6379"} {
				for _, odd := range []string{"/", "?", "#", "%zz", "/0?", ":", "\x7f", " "} {
					target := scheme + "://" + user + ":" + first + odd + "YmFy@127.0.0.1:6379"
					_, err := dial(target)
					said := shown(target)
					if err != nil {
						said += err.Error()
					}
					if strings.Contains(said, "Zm9v") || strings.Contains(said, "YmFy") {
						t.Errorf("%q: %s", target, said)
					}
				}
			}
		}
	}
}
