// The keys of a Once stand in one slot, and two pairs of a name and a key never share them.

package keys_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
)

func TestOnceKeys(t *testing.T) {
	for _, tc := range []struct{ name, key, whole, record string }{
		{"charge", "order 7", "charge:order 7", "holdfast_once:{charge:order 7}"},
		{"billing:charge", "7", "billing:charge:7", "holdfast_once:{billing:charge:7}"},
		{"billing", "charge:7", "billing:charge%3A7", "holdfast_once:{billing:charge%3A7}"},
		{"billing", "charge%3A7", "billing:charge%253A7", "holdfast_once:{billing:charge%253A7}"},
		{"{app}:charge", "7", "{app}:charge:7", ""},
		{"charge", "a{b}", "charge:a{b}", ""},
	} {
		at, err := keys.Space("").ForOnce(tc.name, tc.key)
		if err != nil || at.Whole != tc.whole {
			t.Errorf("%q, %q: %q, %v", tc.name, tc.key, at, err)
		}
		if keys.Slot(at.Record) != keys.Slot(tc.whole) {
			t.Errorf("%q, %q: %q is in another slot than the name", tc.name, tc.key, at.Record)
		}
		if tc.record != "" && at.Record != tc.record {
			t.Errorf("%q, %q: %q, want %q", tc.name, tc.key, at.Record, tc.record)
		}
	}
	for _, pair := range [][2]string{{"", "k"}, {"n", ""}, {"holdfast_x", "k"}} {
		if _, err := keys.Space("").ForOnce(pair[0], pair[1]); !errors.Is(err, errs.BadArgument) {
			t.Errorf("%q: %v", pair, err)
		}
	}
}

func TestOnceKeysAreNobodyElses(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	letters := []string{"a", ":", "%", "3A", "{", "}", "25"}
	text := func() (s string) {
		for range 1 + random.IntN(4) {
			s += letters[random.IntN(len(letters))]
		}
		return s
	}
	seen := make(map[string][2]string)
	for range 50_000 {
		pair := [2]string{text(), text()}
		at, err := keys.Space("").ForOnce(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		slot := keys.Slot(at.Record)
		for _, key := range []string{at.Record, at.Token, at.Channel} {
			if keys.Slot(key) != slot {
				t.Fatalf("%q: %q is in another slot", pair, key)
			}
			if other, found := seen[key]; found && other != pair {
				t.Fatalf("%q and %q share %q", pair, other, key)
			}
			seen[key] = pair
		}
	}
}

func TestTickKeys(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.FixedZone("", 3600))
	for after, want := range map[time.Duration]string{0: "09:00:00Z", time.Second / 2: "09:00:00.5Z"} {
		if got, err := keys.Space("").ForTick("report", at.Add(after)); got != "holdfast_tick:{report}:2026-11-22T"+want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := keys.Space("").ForTick("", at); !errors.Is(err, errs.BadArgument) {
		t.Error(err)
	}
}
