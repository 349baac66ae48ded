// The console in a browser: Chromium looks at the page of the real command, while Clients contend on a real
// Redis.

package browsertest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(tests{m}) }

// tests are the tests of this package, and what comes after them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer func() { _ = os.RemoveAll(built) }()
	return t.M.Run()
}

const patience = time.Minute

func TestThePageSeesWhoHoldsAndWhoWaits(t *testing.T) {
	w := begin(t)
	p := w.console().open("/")
	p.sees("main", "No lock is held or waited for now.")

	// A lock is taken.
	billing, shipping := w.client("billing-7f9c"), w.client("shipping-2b41")
	l := lock(t, billing, "orders:42")
	l.Note("charging order 42")
	p.sees(row("orders:42"), "billing-7f9c")
	p.sees(row("orders:42"), "charging order 42")

	// Somebody comes to wait.
	granted := lockLater(t, shipping, "orders:42")
	p.sees(row("orders:42"), "next shipping-2b41")

	// The lock is handed over.
	clienttest.GiveBack(t, l)
	l = <-granted
	p.sees(row("orders:42")+" td[data-label='Held by']", "shipping-2b41")
	p.lacks(row("orders:42")+" td[data-label='Held by']", "billing-7f9c")

	// Its own page knows the past, by the link and by the address.
	p.click(row("orders:42") + " a")
	p.sees("h1", "orders:42")
	p.sees(".events", "billing-7f9c")
	clienttest.GiveBack(t, l)
	p.sees(".events", "Released by shipping-2b41")
	p.sees("main", "It is free.")
	p.open("/lock/orders%3A42")
	p.sees(".events", "shipping-2b41 (")
}

func TestThePageSeesALoss(t *testing.T) {
	w := begin(t)
	dying := w.client("worker-that-dies")
	redistest.Must(t, redistest.Err(dying.Mutex("jobs", holdfast.Fixed(time.Hour)).Lock(t.Context())))
	p := w.console().open("/lock/jobs")
	p.sees(".holders", "worker-that-dies")
	// It neither renews nor releases: that is what the death of a holder looks like. Its last seconds begin now.
	redistest.Must(t, w.redis.Admin().Expire(t.Context(), "jobs", 10*time.Second).Err())
	p.sees(".events", "Lost by worker-that-dies")
	p.sees("svg.lanes .mark.lost", "✕")
	p.sees("main", "It is free.")
}

func TestAReleaseByForceOnceTheNameIsTyped(t *testing.T) {
	w := begin(t)
	l := lock(t, w.client("billing-7f9c"), "orders:42")
	c := w.console("--allow-release")
	p := c.open("/lock/orders%3A42")
	p.sees(".holders", "billing-7f9c")
	p.click(".release button.danger")
	p.sees("dialog[open]", "It is taken from billing-7f9c")
	p.fill("#typed", "orders:41")
	p.click("dialog button.danger")
	p.sees("#release-wrong", "nothing was changed")
	redistest.Must(t, l.Extend(redistest.Within(t, patience), time.Minute))
	p.fill("#typed", "orders:42")
	p.press("#typed", "\r")
	p.sees(".done", "Taken from billing-7f9c")
	p.sees(".events", "Taken from billing-7f9c")
	p.sees("main", "It is free.")
	select {
	case <-l.Done():
	case <-time.After(patience):
		t.Error("the holder was not told that it has lost the lock")
	}
	c.says("refused: a release of orders:42, asked for by 127.0.0.1:",
		"release by force of orders:42, taken from billing-7f9c ("+l.Owner().Short()+")")
}

func TestAPermitIsFreed(t *testing.T) {
	w := begin(t)
	permits := w.client("reports-0").PermitSemaphore("gpu:leases")
	redistest.Must(t, redistest.Err(permits.TrySetPermits(t.Context(), 3)))
	for range 2 {
		redistest.Must(t, redistest.Err(permits.Acquire(t.Context(), 1)))
	}
	p := w.console("--allow-release").open("/lock/gpu%3Aleases")
	p.sees("[role=meter] + p", "1 of 3 free")
	p.click(".holders button.danger")
	p.sees("dialog[open]", "It is taken from permit ")
	p.fill("#typed", "gpu:leases")
	p.click("dialog button[type=submit]")
	p.sees(".done", "Taken from permit ")
	p.sees(".events", "Taken from permit ")
	p.sees("[role=meter] + p", "2 of 3 free")
}

// On the loopback, every account of the machine could look, and with --allow-release take any lock.
func TestWhereOthersCouldReachItItWantsAToken(t *testing.T) {
	for _, flags := range [][]string{{"--listen", "0.0.0.0:0"}, {"--allow-release"}} {
		w := &world{t: t, redis: redistest.Server(t)}
		c := w.console(flags...)
		printed, err := url.Parse(c.address + "/?" + c.query)
		if err != nil || !printed.Query().Has("token") {
			t.Fatalf("%v: it says that it is at %q?%q, %v", flags, c.address, c.query, err)
		}
		viewer := &http.Transport{DisableKeepAlives: true} // it follows no redirections
		for query, cookies := range map[string]int{"": 0, "token=wrong": 0, printed.RawQuery: 1} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+printed.Port()+"/?"+query, http.NoBody)
			redistest.Must(t, err)
			answer, err := viewer.RoundTrip(r)
			redistest.Must(t, err)
			_ = answer.Body.Close()
			redistest.Equal(t, len(answer.Cookies()), cookies, "%d cookies, want %d (%q, %v)", cookies, query, flags)
		}
	}
	w := &world{t: t, redis: redistest.Server(t)}
	if c := w.console("--allow-release", "--token", "a token of this test"); c.query != "" {
		t.Errorf("a token that was given is printed: %q", c.query)
	}
}

func TestOddNamesAreTextOnly(t *testing.T) {
	w := begin(t)
	names := []string{
		`<img src=x onerror=document.title="!">`, "a/b//../c?d#e%41+f&g", "\xff\xfe\x00bytes", "..", "ünïcode ✓",
	}
	client := w.client(`<script>document.title="!"</script>`)
	for _, name := range names {
		lock(t, client, name).Note(`<b onclick="x">bold</b>`)
	}
	c := w.console()
	p := c.open("/")
	redistest.Eventually(t, patience, "all rows", func() error {
		if n := p.count(".locks tbody tr"); n != len(names) {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	for n := range names {
		p.open("/")
		p.sees(fmt.Sprintf(".locks tbody tr:nth-child(%d)", n+1), "bold")
		p.click(fmt.Sprintf(".locks tbody tr:nth-child(%d) a", n+1))
		p.sees(".holders", "<script>document.title=") // so the link leads to the lock itself
		p.sees(".holders", `<b onclick="x">bold</b>`)
	}
	// Nor do they turn round what stands beside them, in the tab's title too.
	const turned = "a\u202egpj.exe"
	lock(t, client, turned)
	p.open("/lock/" + url.PathEscape(turned))
	p.sees(".holders", "<script>document.title=")
	if got := p.eval("document.title"); strings.Contains(got, "\u202e") || !strings.HasPrefix(got, `"a\u202egpj.exe"`) {
		t.Errorf("the title is %q", got)
	}
	redistest.Equal(t, p.count("main img, main script, main b"), 0, "%d elements came out of names")
}

func TestWithVeryManyNamesThePageHasFiftyAtATime(t *testing.T) {
	w := begin(t)
	const many = 300
	w.fakeLocks(many)
	p := w.console().open("/")
	p.sees("#locks", "300")
	p.sees(".pager", "1 to 50 of 300")
	p.click(".pager button:last-child")
	p.sees(".pager", "51 to 100 of 300")
	p.sees("main", "lock:000050")
	p.fill("#page", "6")
	p.press("#page", "\r")
	p.sees(".pager", "251 to 300 of 300")
	p.fill("#search", "LOCK:000299")
	p.sees(".found", "1 found")
	p.sees(row("lock:000299"), "lock:000299")
	redistest.Equal(t, p.eval("location.search"), "?q=LOCK%3A000299", "the address has %q")
}

// A time without its day and zone is taken for one of today, here.
func TestTimesHaveTheirZoneAndDay(t *testing.T) {
	w := begin(t)
	p := w.console().open("/findings")
	call(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	for script, want := range map[string]string{
		`instant(Date.UTC(2020, 1, 3, 20, 0, 5))`:                      "4 Feb 2020 01:30:05 GMT+5:30",
		`instant(Date.now())`:                                          " GMT+5:30",
		`timeOfDay(Date.now() - 86_400_000 * 2).split(" ").length > 2`: "true",
		`timeOfDay(Date.now()).split(" ").length`:                      "1",
	} {
		got := p.eval(`import("/page/time.js").then(({instant, timeOfDay}) => ` + script + `)`)
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s is %q, want %q", script, got, want)
		}
	}
}

func TestTheToken(t *testing.T) {
	w := begin(t)
	lock(t, w.client("billing-7f9c"), "orders:42")
	p := w.console("--token", "a token of this test").open("/lock/orders%3A42")
	p.sees("h1", "Holdfast console")
	p.accessible("login")
	p.fill("#token", "another")
	p.press("#token", "\r")
	p.sees("#wrong", "That is not the token.")
	p.fill("#token", "a token of this test")
	p.press("#token", "\r")
	p.sees(".holders", "billing-7f9c")
	redistest.Equal(t, p.eval("document.cookie"), "", "scripts can read the cookie: %q")
}

func TestKeys(t *testing.T) {
	w := begin(t)
	client := w.client("billing-7f9c")
	lock(t, client, "a")
	lock(t, client, "b")
	p := w.console().open("/")
	p.sees(row("b"), "billing-7f9c")
	p.key("/")
	redistest.Equal(t, p.eval("document.activeElement.id"), "search", "/ leads to %q")
	p.do(chromedp.Focus(row("a") + " a"))
	p.key("ArrowDown")
	redistest.Equal(t, p.eval("document.activeElement.textContent"), "b", "the arrow leads to %q")
	// The focus stays in a row that changes.
	_ = lockLater(t, w.client("shipping-2b41"), "b")
	p.sees(row("b"), "next shipping-2b41")
	redistest.Equal(t, p.eval("document.activeElement.textContent"), "b", "after a change the focus is at %q")
	p.key("Enter")
	p.sees("h1", "b")
}
