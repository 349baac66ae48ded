// How the page looks: light and dark, narrow, for a screen reader, and in the pictures of the documents.

package browsertest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// accessible fails the test if axe-core finds a violation.
func (p *tab) accessible(where string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](axe))
	found := p.eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map(
		(v) => ({id: v.id, help: v.help, nodes: v.nodes.map((n) => n.html + " " + n.failureSummary)}))))`)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	redistest.Must(p.t, json.Unmarshal([]byte(found), &violations))
	for _, v := range violations {
		p.t.Errorf("%s: axe-core: %s: %s\n%s", where, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// reflows fails the test if the page has to be scrolled to the side.
func (p *tab) reflows(where string) {
	p.t.Helper()
	got := p.eval(`(() => {
		const wide = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() &&
			!e.closest(".unseen, thead, svg") && e.getBoundingClientRect().right > innerWidth + 1);
		const scrolls = document.documentElement.scrollWidth > innerWidth ? "it scrolls; " : "";
		return scrolls + wide.map((e) => e.outerHTML.slice(0, 120)).join("; ");
	})()`)
	if got != "" {
		p.t.Errorf("%s is wider than 320 pixels: %s", where, got)
	}
}

// scene has something of each kind stand in Redis, and returns what happens next to the lock orders:42.
func scene(t *testing.T, w *world) (next func() *holdfast.Lease) {
	t.Helper()
	billing, shipping, reports := w.client("billing-7f9c/pid 12"), w.client("shipping-2b41/pid 7"), w.client("reports-0")
	l := lock(t, billing, "orders:42")
	l.Note("charging the customer")
	later := lockLater(t, shipping, "orders:42")
	lock(t, reports, "reports:nightly").Note("rebuilding index 7 of 12")
	lock(t, shipping, "stock:eu-central-1:item-8891")
	for _, c := range []*holdfast.Client{billing, shipping, reports} {
		must(c.RWMutex("prices").RLock(t.Context()))
	}
	for n, name := range []string{"db:migrations", "exports:pool", "api:partner"} {
		s := billing.Semaphore(name)
		must(s.TrySetPermits(t.Context(), []int{1, 8, 40}[n]))
		must(0, s.Acquire(t.Context(), []int{1, 3, 29}[n]))
	}
	permits := reports.PermitSemaphore("gpu:leases")
	must(permits.TrySetPermits(t.Context(), 4))
	must(permits.Acquire(t.Context(), 1))
	must(permits.Acquire(t.Context(), 1))
	must(billing.Latch("deploy:ready").TrySetCount(t.Context(), 5))
	return func() *holdfast.Lease {
		clienttest.GiveBack(t, l)
		l = <-later
		l.Note("sending the parcel")
		later = lockLater(t, reports, "orders:42")
		_ = lockLater(t, billing, "orders:42")
		return l
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTheLooks(t *testing.T) {
	w := begin(t)
	next := scene(t, w)
	c := w.console("--allow-release")
	p := c.open("/")
	p.sees(row("orders:42"), "next shipping-2b41/pid 7")
	p.sees(row("prices"), "and 1 more")
	one := c.open("/lock/orders%3A42")
	one.sees(".queue", "shipping-2b41")
	p.accessible("the list")
	next()
	one.sees(".holders", "sending the parcel")
	one.sees(".events", "Passed from billing-7f9c/pid 12")
	one.sees(".queue", "reports-0")
	one.sees(".queue", "billing-7f9c/pid 12")
	one.sees("svg.lanes", "reports-0")
	one.accessible("one lock")
	one.click(".release button.danger")
	one.sees("dialog[open]", "Type the name")
	one.accessible("the dialog")

	counts := c.open("/counts")
	counts.sees("main", "5 to come")
	counts.sees("main", "11 of 40 free")
	counts.accessible("the counts")
	got := counts.eval(`document.querySelector("li[data-key='exports%3Apool'] [role=meter]").ariaValueText`)
	redistest.Equal(t, got, "5 of 8 free", "the gauge reads %q")

	findings := c.open("/findings")
	findings.click("main button")
	findings.sees("main", "appendonly is off")
	findings.accessible("the findings")

	one.eval(`document.querySelector("dialog").close()`)
	tabs := []struct {
		where string
		*tab
	}{{"the list", p}, {"one lock", one}, {"the counts", counts}, {"the findings", findings}}
	for _, tab := range tabs {
		tab.front()
		tab.scheme("dark")
		redistest.Eventually(t, patience, tab.where+" is dark in a dark system", func() error {
			if got := tab.eval("getComputedStyle(document.body).backgroundColor"); got != dark {
				return errors.New(got)
			}
			return nil
		})
		tab.accessible(tab.where + ", dark")
		tab.scheme("light")
		tab.size(320, 800)
		tab.reflows(tab.where)
		tab.accessible(tab.where + ", narrow")
	}
}

const dark = "rgb(17, 24, 28)"

func TestTheSwitchForDark(t *testing.T) {
	w := begin(t)
	p := w.console().open("/")
	p.scheme("light")
	p.click("#theme")
	got := p.eval("document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor")
	redistest.Equal(t, got, "dark"+dark, "after the switch the page is %s")
	p.open("/")
	redistest.Equal(t, p.eval(`document.documentElement.dataset.theme`), "dark", "the page has forgotten that it is to be dark: %s")
}

// TestTenThousandLocks measures what docs/console.md states.
func TestTenThousandLocks(t *testing.T) {
	redistest.LongRun(t)
	w := begin(t)
	const many = 10_000
	w.fakeLocks(many)
	p := w.console().open("/")
	p.sees(".pager", "1 to 50 of 10,000")
	// When the browser itself drew the first row, and how many bytes it had got by then but for the stream.
	got := p.eval(`(() => {
		const all = performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"));
		return all.filter((e) => !e.name.includes("/events/")).reduce((sum, e) => sum + e.transferSize, 0);
	})()`)
	bytes, err := strconv.Atoi(got)
	redistest.Must(t, err)
	before, began := w.commands(), time.Now()
	<-time.After(30 * time.Second)
	rate := float64(w.commands()-before) / time.Since(began).Seconds()
	first := p.eval(`Math.round(performance.getEntriesByName("first-list")[0].startTime)`)
	t.Logf("files %d bytes, first list after %s ms, %.0f commands a second", bytes, first, rate)
	if bytes > 100_000 {
		t.Errorf("the page has %d bytes", bytes)
	}
	if rate > 2000 {
		t.Errorf("%.0f commands a second", rate)
	}
}

// commands returns how many commands Redis has been sent. What scripts run counts too in other figures of
// INFO, but a look sends nothing but scripts, SCAN and PING.
func (w *world) commands() (sum int64) {
	w.t.Helper()
	info, err := w.redis.Admin().Info(w.t.Context(), "commandstats").Result()
	redistest.Must(w.t, err)
	for line := range strings.Lines(info) {
		name, counts, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if slices.Contains([]string{"evalsha", "evalsha_ro", "eval", "eval_ro", "fcall", "scan", "ping"}, name) {
			var calls int64
			redistest.Must(w.t, redistest.Err(fmt.Sscan(counts, &calls)))
			sum += calls
		}
	}
	return sum
}
