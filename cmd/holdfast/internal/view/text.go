// Package view says how to show what is in Redis: as words for people, and as JSON for programs.
//
// Names, identities and notes come from other programs. Whatever bytes they have, nothing that this
// package returns moves a terminal's cursor, or does anything else to it.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// None stands where there is nothing to show.
const None = "-"

// Name returns a name as one word: as it is, or in quotes if it has anything but plain characters.
func Name(name string) string {
	if name == "" || name == None || !plain(name) || strings.ContainsAny(name, " \"'\\") {
		return strconv.Quote(name)
	}
	return name
}

// Text returns what a program says of itself: as it is, or in quotes if it has anything but plain
// characters, or blanks that might pass for the space between two columns.
func Text(text string) string {
	if !plain(text) || strings.Contains(text, "  ") || text != strings.Trim(text, " \"") {
		return strconv.Quote(text)
	}
	return text
}

func plain(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}

// Duration returns a duration as shortly as people want it: 1.2s, 45s, 3m12s, 2h05m, 3d04h.
func Duration(d time.Duration) string {
	switch {
	case d == holdfast.NoExpiry:
		return "no end"
	case d < 0:
		return "-" + Duration(-d)
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	}
	d = d.Round(time.Second)
	minutes, hours := int(d/time.Minute), int(d/time.Hour)
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case hours == 0:
		return fmt.Sprintf("%dm%02ds", minutes, int(d/time.Second)%60)
	case hours < 48:
		return fmt.Sprintf("%dh%02dm", hours, minutes%60)
	default:
		return fmt.Sprintf("%dd%02dh", hours/24, hours%24)
	}
}

// Ago returns how long before at a time was; None if the time is not known.
func Ago(since, at time.Time) string {
	if since.IsZero() {
		return None
	}
	return Duration(max(0, at.Sub(since))) + " ago"
}

// Who returns the short name of who holds: what it says that it is, or else the short owner, or the
// short id of a permit.
func Who(h holdfast.Holder) string {
	if h.Who != "" {
		return Text(h.Who)
	}
	return id(h)
}

// id returns the short owner, or the short id of a permit.
func id(h holdfast.Holder) string {
	if h.Permit != "" {
		return "permit " + shortPermit(h.Permit)
	}
	return h.Owner.Short()
}

// shortPermit returns enough of a permit's id to tell permits apart, and too little to give one back.
func shortPermit(permit string) string {
	if len(permit) <= permitShown {
		return permit
	}
	return permit[:permitShown] + "…"
}

const permitShown = 8

// Holder returns all that is known of a holder but its times.
func Holder(h holdfast.Holder) string {
	text := id(h)
	if h.Who != "" {
		text = Text(h.Who) + " (" + text + ")"
	}
	if h.Write {
		text += ", writes"
	}
	if h.Count > 1 {
		text += fmt.Sprintf(", %d leases", h.Count)
	}
	if h.Note != "" {
		text += "; " + strconv.Quote(h.Note)
	}
	return text
}

// HolderOfKind returns all that is known of a holder of something of that kind but its times.
func HolderOfKind(kind holdfast.Kind, h holdfast.Holder) string {
	switch {
	case kind == holdfast.KindShards:
		n := h.Count
		h.Count = 1
		return fmt.Sprintf("%s, %d shards: %s", Holder(h), n, cmp.Or(h.Shards, "none"))
	case kind != holdfast.KindSlots:
		return Holder(h)
	case h.Quarantined:
		return fmt.Sprintf("%d: in quarantine after %s", h.Number, Holder(h))
	}
	return fmt.Sprintf("%d: %s", h.Number, Holder(h))
}

// Waiter returns all that is known of a waiter but its time.
func Waiter(w holdfast.Waiter) string {
	return Holder(holdfast.Holder{Owner: w.Owner, Who: w.Who, Write: w.Write})
}

// State returns in a few words how it stands with what was inspected: who holds it, or how many are left.
func State(i holdfast.Inspection) string {
	paused, state := Paused(i), state(i)
	switch {
	case paused == "":
		return state
	case state == None:
		return paused
	}
	return state + "; " + paused
}

// Paused returns who has paused a name, and why; "" if nobody has.
func Paused(i holdfast.Inspection) string {
	if i.Paused == nil {
		return ""
	}
	text := fmt.Sprintf("paused by %s until %s", Text(i.Paused.By), i.Paused.Until.UTC().Format(time.RFC3339))
	if i.Paused.Because != "" {
		text += ": " + Text(i.Paused.Because)
	}
	return text
}

// state is State without a pause.
func state(i holdfast.Inspection) string {
	switch i.Kind {
	case holdfast.KindPermits:
		return fmt.Sprintf("%d of %d free", i.Value, i.Value+int64(i.Taken))
	case holdfast.KindSemaphore, holdfast.KindSlots, holdfast.KindShards:
		return fmt.Sprintf("%d of %d free", i.Value, i.All)
	case holdfast.KindLimiter:
		if i.Value < 0 {
			return fmt.Sprintf("%d waited for", -i.Value)
		}
		return fmt.Sprintf("%d of %d at once", i.Value, i.All)
	case holdfast.KindLatch:
		return fmt.Sprintf("%d to come", i.Value)
	case holdfast.KindCount:
		return strconv.FormatInt(i.Value, 10)
	case holdfast.KindBarrier:
		if i.State == "open" {
			return fmt.Sprintf("%d of %d have come", i.Value, i.All)
		}
		return i.State
	case holdfast.KindOnce:
		if len(i.Holders) == 0 {
			return i.State
		}
	}
	return holders(i)
}

// holders returns who holds a lock: the writer, or the only holder, or how many there are.
func holders(i holdfast.Inspection) string {
	if len(i.Holders) == 0 {
		return None
	}
	first := i.Holders[0]
	for _, h := range i.Holders {
		if h.Write {
			first = h
		}
	}
	text := Who(first)
	switch {
	case first.Write:
		return text + " (writes)"
	case i.Kind == holdfast.KindRWLock && len(i.Holders) == 1:
		return text + " (reads)"
	case len(i.Holders) > 1:
		return fmt.Sprintf("%s and %d more (read)", text, len(i.Holders)-1)
	case i.State == "asked":
		return text + ", asked to release it"
	}
	return text
}

// Notes returns what the holders say of their work, each in quotes.
func Notes(i holdfast.Inspection) string {
	var notes []string
	for _, h := range i.Holders {
		if h.Note != "" {
			notes = append(notes, strconv.Quote(h.Note))
		}
	}
	return strings.Join(notes, " ")
}

// Left returns for how long the state lasts; None if there is nothing that ends.
func Left(i holdfast.Inspection) string {
	if i.Remaining == 0 || i.Remaining == holdfast.NoExpiry && len(i.Holders) == 0 {
		return None
	}
	return Duration(i.Remaining)
}

// Waiters returns how many wait; None if nobody can tell.
func Waiters(i holdfast.Inspection) string {
	if i.Waiters < 0 {
		return None
	}
	return strconv.Itoa(i.Waiters)
}

// A returns what is stored at a name, with its article.
func A(kind holdfast.Kind) string {
	switch kind {
	case holdfast.KindFree:
		return "free"
	case holdfast.KindUnknown:
		return "nothing of Holdfast's"
	case holdfast.KindCount:
		return "a number"
	case holdfast.KindOnce:
		return "a key of a Once"
	case holdfast.KindPermits:
		return "a semaphore with leased permits"
	case holdfast.KindSlots:
		return "numbered slots"
	case holdfast.KindShards:
		return "shards"
	}
	return "a " + string(kind)
}

// Aged returns an inspection as it stands at a later time, if nothing has happened since.
func Aged(i holdfast.Inspection, at time.Time) holdfast.Inspection {
	later := at.Sub(i.At)
	if later <= 0 {
		return i
	}
	i.At, i.Remaining = at, less(i.Remaining, later)
	i.Holders = slices.Clone(i.Holders)
	for n := range i.Holders {
		i.Holders[n].Remaining = less(i.Holders[n].Remaining, later)
	}
	return i
}

// less returns what is left of some time; 1 ms if it should be over, for 0 says that nothing ends.
func less(left, later time.Duration) time.Duration {
	if left == 0 || left == holdfast.NoExpiry {
		return left
	}
	return max(time.Millisecond, left-later)
}
