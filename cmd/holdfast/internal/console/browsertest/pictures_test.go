// The pictures of the documents: with -update-screenshots they are taken anew.

package browsertest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var updateScreenshots = flag.Bool("update-screenshots", false, "write the pictures of the documents anew")

const pictures = "../../../../../docs/images"

func TestPictures(t *testing.T) {
	if !*updateScreenshots {
		t.Skip("the pictures of the documents are taken with -update-screenshots")
	}
	w := begin(t)
	next := scene(t, w)
	c := w.console("--allow-release")
	c.open("/lock/orders%3A42").sees(".queue", "shipping-2b41")
	list := c.open("/")
	story(t, w, next)

	one := c.open("/lock/orders%3A42")
	one.sees(".queue", "for ")
	one.sees("svg.lanes .mark.lost", "✕")
	one.screenshot("lock")
	one.scheme("dark")
	one.screenshot("dark")
	one.scheme("light")
	one.click(".release button.danger")
	one.sees("dialog[open]", "Type the name")
	one.fill("#typed", "orders:42")
	one.screenshot("release")

	list.front()
	list.sees(row("orders:42"), "next ")
	list.screenshot("list")
	list.size(320, 800)
	list.screenshot("narrow")
	counts := c.open("/counts")
	counts.sees("main", "11 of 40 free")
	counts.screenshot("counts")
	findings := c.open("/findings")
	findings.click("main button")
	findings.sees("main", "appendonly is off")
	findings.screenshot("findings")

	w.redis.Kill()
	list.size(1280, 800)
	list.front()
	list.sees("#live", "No answer, as of 9s ago")
	list.screenshot("outage")
}

// story has the lock orders:42 go from one process to the next, and one of them lose it. It sleeps, since a
// picture of ages needs time to go by.
func story(t *testing.T, w *world, next func() *holdfast.Lease) {
	t.Helper()
	time.Sleep(5 * time.Second)
	worker := w.client("worker-3f0a/pid 4")
	waiting := make(chan error, 1)
	go func() {
		_, err := worker.Mutex("orders:42", holdfast.Fixed(6*time.Second)).Lock(t.Context())
		waiting <- err
	}()
	time.Sleep(3 * time.Second)
	l := next()
	time.Sleep(4 * time.Second)
	clienttest.GiveBack(t, l)
	redistest.Must(t, <-waiting)
	time.Sleep(14 * time.Second) // it dies of its lease, and others hold it after that
}

// screenshot writes a picture of what the tab shows.
func (p *tab) screenshot(name string) {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	redistest.Must(p.t, err)
	if len(picture) > 150_000 {
		p.t.Errorf("the picture %s has %d bytes", name, len(picture))
	}
	redistest.Must(p.t, os.MkdirAll(pictures, 0o755))
	redistest.Must(p.t, os.WriteFile(filepath.Join(pictures, "console-"+name+".png"), picture, 0o644))
}
