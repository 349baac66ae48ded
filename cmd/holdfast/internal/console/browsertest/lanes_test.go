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

// A bar that begins or ends where nobody has seen it begin or end makes an operator take for stuck what comes and goes.
func TestLanesShowOnlyWhatWasSeen(t *testing.T) {
	w := begin(t)
	p := w.console().open("/findings")
	const a, b = `{"owner": "a:1"}`, `{"owner": "b:1"}`
	for _, c := range []struct {
		what        string
		past, spans string // in seconds, of which 100 is now
		row         string // "": not known
		asOf        int
		whole       int // since when nothing is forgotten
		want        string
	}{
		{
			"granted and released while watched",
			`{"what": "granted", "at": 20, "holder": ` + a + `}, {"what": "released", "at": 30, "from": ` + a + `}`,
			"[[10, 100]]", "{}", 100, 0, "a held [20-30]",
		},
		{
			"lost, as Redis dropped keys, and then another's",
			`{"what": "granted", "at": 20, "holder": ` + a + `}, {"what": "lost", "at": 30, "from": ` + a + `},
			{"what": "granted", "at": 40, "holder": ` + b + `}`,
			"[[10, 100]]", `{"holders": [` + b + `], "held": 1}`, 100, 0, "a held [20-30]; b held [40-now",
		},
		{
			"a release of a hold whose grant nobody saw",
			`{"what": "released", "at": 30, "from": ` + a + `}`, "[[10, 100]]", "{}", 100, 0, "a held <10-30]",
		},
		{
			"the same, and Redis knows since when it was held",
			`{"what": "released", "at": 30, "begun": 4, "from": ` + a + `}`, "[[10, 100]]", "{}", 100, 0, "a held [4-30]",
		},
		{
			"readers that come and go, of whom one look saw two",
			`{"what": "released", "at": 30, "from": {"owner": "a:1"}}, {"what": "granted", "at": 50, "holder": {"owner": "a:2"}},
			{"what": "released", "at": 52, "from": {"owner": "a:2"}}`,
			"[[10, 100]]", "{}", 100, 0, "a held <10-30], held [50-52]",
		},
		{
			"a release that the first look after a break found",
			`{"what": "granted", "at": 20, "holder": ` + a + `}, {"what": "released", "at": 80, "late": true, "from": ` + a + `}`,
			"[[10, 40], [80, 100]]", "{}", 100, 0, "a held [20-40>",
		},
		{
			"a grant that the first look after a break found",
			`{"what": "granted", "at": 80, "late": true, "holder": ` + a + `}`,
			"[[10, 40], [80, 100]]", `{"holders": [` + a + `], "held": 1}`, 100, 0, "a held <80-now",
		},
		{
			"a hand-over in a break",
			`{"what": "granted", "at": 20, "holder": ` + a + `},
			{"what": "passed", "at": 80, "late": true, "from": ` + a + `, "holder": ` + b + `}`,
			"[[10, 40], [80, 100]]", `{"holders": [` + b + `], "held": 1}`, 100, 0, "a held [20-40>; b held <80-now",
		},
		{
			"held when the look began",
			`{"what": "watched", "at": 60}, {"what": "already", "at": 60, "holder": ` + a + `},
			{"what": "released", "at": 70, "from": ` + a + `}`,
			"[]", "{}", 100, 0, "a held <60-70]",
		},
		{
			"held through a break",
			`{"what": "granted", "at": 20, "holder": ` + a + `}, {"what": "released", "at": 90, "from": ` + a + `}`,
			"[[10, 40], [80, 100]]", "{}", 100, 0, "a held [20-90]",
		},
		{
			"gone, and nobody saw how",
			`{"what": "granted", "at": 20, "holder": ` + a + `}`, "[[10, 40], [80, 100]]", "{}", 100, 0, "a held [20-40>",
		},
		{
			"held now, and nobody knows since when",
			"", "[[10, 100]]", `{"holders": [` + a + `, ` + b + `], "held": 2}`, 100, 0, "a held <10-now; b held <10-now",
		},
		{
			"the past before is forgotten",
			"", "[[10, 100]]", `{"holders": [` + a + `, ` + b + `], "held": 2}`, 100, 55, "a held <55-now; b held <55-now",
		},
		{
			"held when it was seen last, in an outage",
			`{"what": "granted", "at": 20, "holder": ` + a + `}`, "[[10, 60]]", `{"holders": [` + a + `], "held": 1}`, 60, 0,
			"a held [20-60>",
		},
		{
			"not known now",
			`{"what": "watched", "at": 10}, {"what": "granted", "at": 20, "holder": ` + a + `}, {"what": "unwatched", "at": 60}`,
			"[]", "", 60, 0, "a held [20-60>",
		},
		{
			"more hold than are told of",
			`{"what": "granted", "at": 20, "holder": ` + a + `}`, "[[10, 100]]", `{"holders": [` + b + `], "held": 2, "since": 0}`,
			100, 0, "b held <10-now; a held [20-now",
		},
		{
			"waited, and then no longer",
			`{"what": "waits", "at": 20, "waiter": ` + a + `}, {"what": "gone", "at": 30, "waiter": ` + a + `},
			{"what": "waits", "at": 40, "waiter": ` + b + `}`,
			"[[10, 100]]", `{"queue": [` + b + `]}`, 100, 0, "a waited [20-30]; b waited [40-now",
		},
	} {
		row := c.row
		if row == "" {
			row = "null"
		}
		script := fmt.Sprintf(`import("/page/lanes.js").then(({lanesOf}) => {
			const told = {row: %s, past: [%s], spans: %s, asOf: %d, whole: %d};
			const scaled = JSON.parse(JSON.stringify(told), (k, v) => typeof v === "number" && k !== "held" ? v * 10000 : v);
			return lanesOf(scaled, 0, 1000000).map((lane) => lane.process + " " + lane.bars.map((b) => b.what + " " +
				(b.openFrom ? "<" : "[") + b.from / 10000 + "-" + (b.to === null ? "now" : b.to / 10000 + (b.openTo ? ">" : "]")))
				.join(", ")).join("; ");
		})`, row, c.past, c.spans, c.asOf, c.whole)
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
