// The lanes: they show what was seen, and nothing else.

package browsertest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// events are the words in which a test says what was seen, at a second, of the processes a and b.
const events = `
	const [a, a2, b] = ["a:1", "a:2", "b:1"].map((owner) => ({owner}));
	const holds = (...holders) => ({holders, held: holders.length});
	const event = (what, role) => (at, who, more) => ({what, at, [role]: who, ...more});
	const granted = event("granted", "holder"), already = event("already", "holder");
	const released = event("released", "from"), lost = event("lost", "from");
	const waits = event("waits", "waiter"), gone = event("gone", "waiter");
	const passed = (at, from, holder, more) => ({what: "passed", at, from, holder, ...more});
	const watched = (at) => ({what: "watched", at}), unwatched = (at) => ({what: "unwatched", at});
	const late = {late: true};`

// A bar that begins or ends where nobody has seen it begin or end makes an operator take for stuck what comes and goes.
func TestLanesShowOnlyWhatWasSeen(t *testing.T) {
	w := begin(t)
	p := w.console().open("/findings")
	const all, broken = "[[10, 100]]", "[[10, 40], [80, 100]]" // when somebody looked
	for _, c := range []struct {
		what, past, spans, row string // in seconds, of which 100 is now; a row of null is not known
		asOf, whole            int    // whole: since when nothing is forgotten
		want                   string
	}{
		{"granted and released while watched", "granted(20, a), released(30, a)", all, "{}", 100, 0, "a held [20-30]"},
		{
			"lost, as Redis dropped keys, and then another's", "granted(20, a), lost(30, a), granted(40, b)",
			all, "holds(b)", 100, 0, "a held [20-30]; b held [40-now",
		},
		{"a release of a hold whose grant nobody saw", "released(30, a)", all, "{}", 100, 0, "a held <10-30]"},
		{"the same, and Redis knows since when", "released(30, a, {begun: 4})", all, "{}", 100, 0, "a held [4-30]"},
		{
			"readers that come and go, of whom one look saw two", "released(30, a), granted(50, a2), released(52, a2)",
			all, "{}", 100, 0, "a held <10-30], held [50-52]",
		},
		{
			"a release that the first look after a break found", "granted(20, a), released(80, a, late)",
			broken, "{}", 100, 0, "a held [20-40>",
		},
		{
			"a grant that the first look after a break found", "granted(80, a, late)",
			broken, "holds(a)", 100, 0, "a held <80-now",
		},
		{
			"a hand-over in a break", "granted(20, a), passed(80, a, b, late)",
			broken, "holds(b)", 100, 0, "a held [20-40>; b held <80-now",
		},
		{"held when the look began", "watched(60), already(60, a), released(70, a)", "[]", "{}", 100, 0, "a held <60-70]"},
		{"held through a break", "granted(20, a), released(90, a)", broken, "{}", 100, 0, "a held [20-90]"},
		{"gone, and nobody saw how", "granted(20, a)", broken, "{}", 100, 0, "a held [20-40>"},
		{"held now, and nobody knows since when", "", all, "holds(a, b)", 100, 0, "a held <10-now; b held <10-now"},
		{"the past before is forgotten", "", all, "holds(a, b)", 100, 55, "a held <55-now; b held <55-now"},
		{"held when it was seen last, in an outage", "granted(20, a)", "[[10, 60]]", "holds(a)", 60, 0, "a held [20-60>"},
		{"not known now", "watched(10), granted(20, a), unwatched(60)", "[]", "null", 60, 0, "a held [20-60>"},
		{
			"more hold than are told of", "granted(20, a)",
			all, "{holders: [b], held: 2, since: 0}", 100, 0, "b held <10-now; a held [20-now",
		},
		{
			"waited, and then no longer", "waits(20, a), gone(30, a), waits(40, b)",
			all, "{queue: [b]}", 100, 0, "a waited [20-30]; b waited [40-now",
		},
	} {
		script := fmt.Sprintf(`import("/page/lanes.js").then(({lanesOf}) => {%s
			const told = {row: %s, past: [%s], spans: %s, asOf: %d, whole: %d};
			const scaled = JSON.parse(JSON.stringify(told), (k, v) => typeof v === "number" && k !== "held" ? v * 10000 : v);
			return lanesOf(scaled, 0, 1000000).map((lane) => lane.process + " " + lane.bars.map((b) => b.what + " " +
				(b.openFrom ? "<" : "[") + b.from / 10000 + "-" + (b.to === null ? "now" : b.to / 10000 + (b.openTo ? ">" : "]")))
				.join(", ")).join("; ");
		})`, events, c.row, c.past, c.spans, c.asOf, c.whole)
		redistest.Equal(t, p.eval(script), c.want, "%s, want %s (%s)", c.want, c.what)
	}
}

var short = regexp.MustCompile(`[0-9]+ short holds? |short holds, seen by`)

// A lock that is held most of the time, in holds that no look falls into, must not look unused.
func TestShortHoldsBetweenTwoLooksAreCounted(t *testing.T) {
	w := begin(t)
	client := w.client("billing-7f9c")
	p := w.console().open("/lock/jobs")
	p.sees("main", "It is free.")
	redistest.Eventually(t, patience, "a count of short holds", func() error {
		for range 20 {
			clienttest.GiveBack(t, lock(t, client, "jobs"))
		}
		var texts []string
		script := `JSON.stringify([".events", ".card", "svg.lanes"].map((s) => document.querySelector(s).textContent))`
		if err := json.Unmarshal([]byte(p.eval(script)), &texts); err != nil {
			return err
		}
		for _, text := range texts {
			if !short.MatchString(text) {
				return fmt.Errorf("no short hold in %q", text)
			}
		}
		return nil
	})
}
