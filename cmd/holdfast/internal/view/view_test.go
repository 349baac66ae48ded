// What is shown fits a line, and does nothing to a terminal.

package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"orders:42": "orders:42", "": `""`, "a b": `"a b"`, "ключ": "ключ", "a\x1b[2J": `"a\x1b[2J"`, "a\nb": `"a\nb"`,
		"a\xffb": `"a\xffb"`, `a"b`: `"a\"b"`, `a\b`: `"a\\b"`, "-": `"-"`, "a\u202eb": `"a\u202eb"`, "a\u00a0b": `"a\u00a0b"`,
	} {
		redistest.Equal(t, Name(name), want, "%s, want %s (%q)", want, name)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"billing-7f9c/pid 12": "billing-7f9c/pid 12",
		"x  5s ago":           `"x  5s ago"`, " x": `" x"`, "a\x07": `"a\a"`, `"x"`: `"\"x\""`,
	} {
		redistest.Equal(t, Text(text), want, "%s, want %s (%q)", want, text)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Millisecond: "1.2s", 9*time.Second + 960*time.Millisecond: "10s", 45 * time.Second: "45s",
		99 * time.Second: "99s", 192 * time.Second: "3m12s", 2*time.Hour + 5*time.Minute: "2h05m", 76 * time.Hour: "3d04h",
		-5 * time.Second: "-5s", holdfast.NoExpiry: "no end",
	} {
		redistest.Equal(t, Duration(d), want, "%s, want %s (%v)", want, d)
	}
}

func TestState(t *testing.T) {
	owner, err := holdfast.ParseOwner("ac9cf787-2d1c-8486-8727-ea2f2f26e3ba:5")
	redistest.Must(t, err)
	pod, nobody := holdfast.Holder{Owner: owner, Who: "pod-1", Count: 1}, holdfast.Holder{Owner: owner, Count: 1}
	writer := holdfast.Holder{Owner: owner, Who: "pod-2", Write: true}
	for want, i := range map[string]holdfast.Inspection{
		"-":                         {Kind: holdfast.KindMutex},
		"pod-1":                     {Kind: holdfast.KindMutex, Holders: []holdfast.Holder{pod}},
		"ac9cf787…:5":               {Kind: holdfast.KindLeader, Holders: []holdfast.Holder{nobody}},
		"pod-1 (reads)":             {Kind: holdfast.KindRWLock, Holders: []holdfast.Holder{pod}},
		"pod-1 and 2 more (read)":   {Kind: holdfast.KindRWLock, Holders: []holdfast.Holder{pod, pod, pod}},
		"pod-2 (writes)":            {Kind: holdfast.KindRWLock, Holders: []holdfast.Holder{pod, writer}},
		"-1 of 2 free":              {Kind: holdfast.KindPermits, Value: -1, Taken: 3},
		"3 of 5 free":               {Kind: holdfast.KindSemaphore, Value: 3, All: 5},
		"1 of 64 free":              {Kind: holdfast.KindShards, Value: 1, All: 64},
		"2 to come":                 {Kind: holdfast.KindLatch, Value: 2},
		"7":                         {Kind: holdfast.KindCount, Value: 7},
		"1 of 3 have come":          {Kind: holdfast.KindBarrier, State: "open", Value: 1, All: 3},
		"13 of 20 at once":          {Kind: holdfast.KindLimiter, Value: 13, All: 20},
		"7 waited for":              {Kind: holdfast.KindLimiter, Value: -7, All: 20},
		"tripped":                   {Kind: holdfast.KindBarrier, State: "tripped"},
		"done":                      {Kind: holdfast.KindOnce, State: "done"},
		"permit 0123abcd…":          {Kind: holdfast.KindUnknown, Holders: []holdfast.Holder{{Permit: "0123abcd4567ef89"}}},
		`"x\x1b" (ac9cf787…:5)`[:7]: {Kind: holdfast.KindOnce, State: "working", Holders: []holdfast.Holder{{Owner: owner, Who: "x\x1b"}}},
	} {
		redistest.Equal(t, State(i), want, "%s, want %s (%v)", want, i)
	}
	full := holdfast.Holder{Owner: owner, Who: "pod-1", Note: "line\n", Write: true, Count: 2}
	if got, want := Holder(full), `pod-1 (ac9cf787…:5), writes, 2 leases; "line\n"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The names of the fields stay as they are: programs read them.
func TestJSONNamesAreStable(t *testing.T) {
	owner, err := holdfast.ParseOwner("ac9cf787-2d1c-8486-8727-ea2f2f26e3ba:5")
	redistest.Must(t, err)
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.FixedZone("", 3600))
	i := holdfast.Inspection{
		Name: "a\xff", Kind: holdfast.KindMutex, At: at, HeldSince: at.Add(-90 * time.Second), Remaining: 27500 * time.Millisecond,
		Holders: []holdfast.Holder{{Owner: owner, Who: "pod-1", Note: "n", Count: 1, Remaining: holdfast.NoExpiry}},
		Waiters: 1, Queue: []holdfast.Waiter{{Owner: owner, Since: at.Add(-time.Second)}},
	}
	got, err := json.Marshal(JSON(i, false))
	want := `{"name":"a\ufffd","name_base64":"Yf8=","kind":"mutex","at":"2026-11-25T11:00:00Z",` +
		`"holders":[{"owner":"ac9cf787…:5","who":"pod-1","note":"n","count":1,"write":false,"remaining_seconds":null}],` +
		`"held_since":"2026-11-25T10:58:30Z","held_for_seconds":90,"remaining_seconds":27.5,"waiters":1,` +
		`"queue":[{"owner":"ac9cf787…:5","since":"2026-11-25T10:59:59Z","waited_seconds":1,"write":false}],` +
		`"value":0,"all":0,"taken":0}`
	if string(got) != want || err != nil {
		t.Errorf("%s, %v\nwant\n%s", got, err, want)
	}
	if got, _ := json.Marshal(JSON(i, true)); !strings.Contains(string(got), owner.String()) {
		t.Errorf("%s", got)
	}
}
