// An outage on the page: what is not known is not shown as free, and what is old says so.

package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// In the moment in which an operator looks, an empty list would say that nothing is held.
func TestAPageThatIsOpenedInAnOutageKnowsNothing(t *testing.T) {
	w := begin(t)
	lock(t, w.client("billing-7f9c"), "orders:42")
	c := w.console("--timeout", "2s")
	w.redis.Kill()
	for _, view := range []struct {
		path string
		says []string // in main
	}{
		{"/", []string{"Redis does not answer; not known.", "Held–", "Waited for–", "Waiters–", "Held for longest–"}},
		{"/counts", []string{"Redis does not answer; not known."}},
		{"/lock/orders%3A42", []string{"Redis does not answer; not known.", "WaitingNot known."}},
	} {
		p := c.open(view.path)
		p.sees("#trouble", "Redis does not answer: nothing could be looked at, and nothing has been seen before.")
		for _, text := range view.says {
			p.sees("main", text)
		}
		p.sees("#live", "No answer")
		p.saysNothingIsFree(view.path)
		p.accessible(view.path)
	}
	findings := c.open("/findings")
	findings.click("main button")
	findings.sees(".verdict.bad", "Not known: Redis does not answer.")
	findings.lacks("main", "Nothing voids a promise")
}

// What was seen before stays, with its age, on a page that was open and on one that is opened later.
func TestInAnOutageThePageShowsWhatWasSeenAsOld(t *testing.T) {
	w := begin(t)
	lock(t, w.client("billing-7f9c"), "orders:42")
	c := w.console("--timeout", "2s", "--allow-release")
	list := c.open("/")
	list.sees(row("orders:42"), "billing-7f9c")
	one := c.open("/lock/orders%3A42")
	one.sees(".holders", "billing-7f9c")
	one.sees("#live", "Live") // that of the list was shown before
	w.redis.Kill()
	later, empty := c.open("/"), c.open("/counts")
	for _, p := range []*tab{list, one, later, empty} {
		p.front()
		p.sees("#trouble", "Redis does not answer: nothing could be looked at. What is shown was seen at ")
		p.sees("#live", "No answer, as of ")
		p.saysNothingIsFree("an open page")
	}
	for _, p := range []*tab{list, later} {
		p.sees(row("orders:42"), "billing-7f9c")
		p.sees("main", "Held1")
	}
	one.sees(".holders", "billing-7f9c")
	one.lacks("svg.lanes", "until now")
	redistest.Equal(t, one.eval(`document.querySelector(".release button").disabled`), "true", "a release of what cannot be asked can be begun: %s")
	empty.sees("main", "No semaphore, latch or barrier was in Redis at ")
	age := `document.querySelector(".facts time").textContent`
	if before, after := one.eval(age), one.eval(`new Promise((r) => setTimeout(r, 2500)).then(() => `+age+`)`); before != after {
		t.Errorf("the age of what is old goes on, from %s to %s", before, after)
	}
	one.accessible("an old page")

	// And back.
	w.redis.Restart(true)
	list.front()
	list.sees("#live", "Live")
	redistest.Eventually(t, patience, "no trouble", func() error {
		if text := list.text("#trouble"); text != "" {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
}

// saysNothingIsFree fails the test if a page claims of what is not seen that it is free, or that it is live.
func (p *tab) saysNothingIsFree(where string) {
	p.t.Helper()
	text := p.text("body")
	for _, claim := range []string{"It is free", "Nobody waits", "is held or waited for now", "Live"} {
		if strings.Contains(text, claim) {
			p.t.Errorf("%s: the page says %q:\n%s", where, claim, text)
		}
	}
	if chips := p.text(".title .chip"); strings.Contains(chips, "free") {
		p.t.Errorf("%s: a chip says %q", where, chips)
	}
	dot := p.eval(`getComputedStyle(document.getElementById("live"), "::before").backgroundColor`)
	if green := p.eval(`(() => {
		const e = document.body.appendChild(document.createElement("i"));
		e.style.backgroundColor = "var(--good)";
		const c = getComputedStyle(e).backgroundColor;
		e.remove();
		return c;
	})()`); dot == green {
		p.t.Errorf("%s: the dot is green", where)
	}
}
