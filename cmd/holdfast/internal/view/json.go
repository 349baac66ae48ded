// The JSON form: stable names, durations in seconds, times by RFC 3339, and nothing by which a hold could
// be released unless it is asked for.

package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// Line returns v in JSON, with its newline. What might move a terminal's cursor or turn its text around is escaped, as
// JSON allows in texts: it can be nowhere else.
func Line(v any) ([]byte, error) {
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	if !bytes.ContainsFunc(plain.Bytes(), moves) {
		return plain.Bytes(), nil
	}
	var line bytes.Buffer
	for _, r := range plain.String() {
		if moves(r) {
			fmt.Fprintf(&line, `\u%04x`, r)
		} else {
			line.WriteRune(r)
		}
	}
	return line.Bytes(), nil
}

// moves reports whether a terminal may take r for a command: DEL, the C1 controls, and the marks of direction.
func moves(r rune) bool {
	return r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r)
}

// Inspection is an Inspection in JSON. What is not known is null, or left out.
type Inspection struct {
	Name      string       `json:"name"`
	NameBytes []byte       `json:"name_base64,omitempty"` // where name cannot show the bytes
	Kind      string       `json:"kind"`
	At        time.Time    `json:"at"`
	Holders   []HolderJSON `json:"holders"`
	HeldSince *time.Time   `json:"held_since"`
	HeldFor   *float64     `json:"held_for_seconds"`
	Remaining *float64     `json:"remaining_seconds"` // null: it has no end
	Waiters   *int         `json:"waiters"`
	Queue     []WaiterJSON `json:"queue"`
	Value     int64        `json:"value"`
	All       int64        `json:"all"`
	Taken     int          `json:"taken"`
	State     string       `json:"state,omitempty"`
	Paused    *PauseJSON   `json:"paused,omitempty"`
}

// PauseJSON is a Pause in JSON.
type PauseJSON struct {
	By      string    `json:"by"`
	Because string    `json:"because,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// HolderJSON is a Holder in JSON.
type HolderJSON struct {
	Owner     string   `json:"owner,omitempty"`
	Who       string   `json:"who,omitempty"`
	Note      string   `json:"note,omitempty"`
	Permit    string   `json:"permit,omitempty"`
	Count     int      `json:"count"`
	Write     bool     `json:"write"`
	Number    *int     `json:"number,omitempty"`      // of a slot
	Over      bool     `json:"quarantined,omitempty"` // of a slot
	Shards    string   `json:"shards,omitempty"`      // of a member of shards: which it has
	Remaining *float64 `json:"remaining_seconds"`     // null: it has no end
}

// WaiterJSON is a Waiter in JSON.
type WaiterJSON struct {
	Owner  string     `json:"owner,omitempty"`
	Who    string     `json:"who,omitempty"`
	Since  *time.Time `json:"since"`
	Waited *float64   `json:"waited_seconds"`
	Write  bool       `json:"write"`
}

// JSON returns an Inspection as it is written in JSON. Owners and permits are whole only if owners says
// so, because whoever knows one can release it.
func JSON(i holdfast.Inspection, owners bool) Inspection {
	out := Inspection{
		Name: i.Name, Kind: string(i.Kind), At: i.At.UTC(),
		Holders: []HolderJSON{}, Queue: []WaiterJSON{},
		Remaining: seconds(i.Remaining),
		Value:     i.Value, All: i.All, Taken: i.Taken, State: i.State,
	}
	if !utf8.ValidString(i.Name) {
		out.NameBytes = []byte(i.Name)
	}
	if i.Kind == holdfast.KindPermits {
		out.All = i.Value + int64(i.Taken)
	}
	if p := i.Paused; p != nil {
		out.Paused = &PauseJSON{By: p.By, Because: p.Because, Since: p.Since.UTC(), Until: p.Until.UTC()}
	}
	out.HeldSince, out.HeldFor = since(i.HeldSince, i.At)
	if i.Waiters >= 0 {
		out.Waiters = &i.Waiters
	}
	for _, h := range i.Holders {
		out.Holders = append(out.Holders, HolderOf(i.Kind, h, owners))
	}
	for _, w := range i.Queue {
		out.Queue = append(out.Queue, WaiterOf(w, i.At, owners))
	}
	return out
}

// HolderOf returns a Holder of something of that kind as it is written in JSON.
func HolderOf(kind holdfast.Kind, h holdfast.Holder, owners bool) HolderJSON {
	out := HolderJSON{
		Who: h.Who, Note: h.Note, Count: h.Count, Write: h.Write, Shards: h.Shards,
		Owner: owner(h.Owner, owners), Permit: shortPermit(h.Permit), Remaining: seconds(h.Remaining),
	}
	if owners {
		out.Permit = h.Permit
	}
	if kind == holdfast.KindSlots {
		out.Number, out.Over = &h.Number, h.Quarantined
	}
	return out
}

// WaiterOf returns a Waiter as it is written in JSON; at is when it was seen.
func WaiterOf(w holdfast.Waiter, at time.Time, owners bool) WaiterJSON {
	out := WaiterJSON{Who: w.Who, Write: w.Write, Owner: owner(w.Owner, owners)}
	out.Since, out.Waited = since(w.Since, at)
	return out
}

func owner(o holdfast.Owner, whole bool) string {
	switch {
	case o.IsZero():
		return ""
	case whole:
		return o.String()
	}
	return o.Short()
}

func since(t, at time.Time) (*time.Time, *float64) {
	if t.IsZero() {
		return nil, nil
	}
	t = t.UTC()
	return &t, seconds(max(0, at.Sub(t)))
}

// seconds returns a duration in seconds; nil if it has no end.
func seconds(d time.Duration) *float64 {
	if d == holdfast.NoExpiry {
		return nil
	}
	s := d.Round(time.Millisecond).Seconds()
	return &s
}
