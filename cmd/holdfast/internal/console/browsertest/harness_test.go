// The harness: a Redis, Clients of the library, the real command, and a browser.

package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// world is what one test has.
type world struct {
	t     *testing.T
	redis *redistest.Proc
	ctx   context.Context // of the browser
}

func begin(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, redis: redistest.Server(t)}
	w.ctx = browser(t)
	return w
}

// browser starts a Chromium, and ends it with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no chromium is installed: %v", err)
		}
		t.Skip("no chromium is installed: apt-get install chromium")
	}
	dir, err := os.MkdirTemp("", "holdfast-chromium")
	redistest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // its processes may still write there, which t.TempDir would not forgive
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("lang", "en-GB"), chromedp.UserDataDir(dir))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("chromium: %v", err)
		}
	})
	return ctx
}

// client returns a Client that says that it is who.
func (w *world) client(who string) *holdfast.Client {
	w.t.Helper()
	return clienttest.OpenClient(w.t, w.redis.Client(w.t), holdfast.WithIdentity(who))
}

func lock(t *testing.T, c *holdfast.Client, name string) *holdfast.Lease {
	t.Helper()
	return clienttest.Grab(t, c.Mutex(name))
}

// lockLater begins to wait for a lock.
func lockLater(t *testing.T, c *holdfast.Client, name string) <-chan *holdfast.Lease {
	t.Helper()
	granted := make(chan *holdfast.Lease, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if l, err := c.Mutex(name).Lock(t.Context()); err == nil {
			granted <- l
		}
	})
	t.Cleanup(waiting.Wait)
	return granted
}

// fakeLocks writes many locks at once, as if as many threads of 100 processes held them for an hour.
func (w *world) fakeLocks(many int) {
	w.t.Helper()
	pipe := w.redis.Admin().Pipeline()
	for n := range many {
		name := fmt.Sprintf("lock:%06d", n)
		pipe.HSet(w.t.Context(), name, fmt.Sprintf("%08x-0000-8000-8000-000000000000:%d", n%100, n), 1)
		pipe.Expire(w.t.Context(), name, time.Hour)
	}
	redistest.Must(w.t, redistest.Err(pipe.Exec(w.t.Context())))
}

// built is where the command is; "" if it has not been built.
var built string

// command builds the holdfast command, once for all tests.
var command = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "holdfast-console"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "holdfast")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../.."
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return path, nil
})

// console is one run of holdfast console.
type console struct {
	*world
	address string
	query   string // what the printed address has after it: a token
	said    string // the file of what it says on standard error
}

// console starts the command, which listens on a free port, and ends it with the test.
func (w *world) console(args ...string) *console {
	w.t.Helper()
	path, err := command()
	redistest.Must(w.t, err)
	args = append([]string{"console", "--url", "redis://" + w.redis.Addr(), "--listen", "127.0.0.1:0"}, args...)
	cmd := exec.Command(path, args...)
	c := &console{world: w, said: filepath.Join(w.t.TempDir(), "said")}
	file, err := os.Create(c.said)
	redistest.Must(w.t, err)
	defer file.Close()
	cmd.Stderr = file
	redistest.Must(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
			w.t.Errorf("after SIGTERM holdfast console ended with %v, want exit code 143", err)
		}
	})
	c.says("the console is at ", "\n")
	text, err := os.ReadFile(c.said)
	redistest.Must(w.t, err)
	_, address, _ := strings.Cut(string(text), "the console is at ")
	address, _, _ = strings.Cut(address, "\n")
	base, query, _ := strings.Cut(address, "?")
	c.address, c.query = strings.TrimSuffix(base, "/"), query
	return c
}

// says waits until the command has said each part, in this order.
func (c *console) says(parts ...string) {
	c.t.Helper()
	redistest.Eventually(c.t, patience, fmt.Sprintf("the console says %q", parts), func() error {
		text, err := os.ReadFile(c.said)
		rest, found := string(text), true
		for _, part := range parts {
			if _, rest, found = strings.Cut(rest, part); !found {
				return fmt.Errorf("it says %q", text)
			}
		}
		return err
	})
}

// tab is a page that a browser shows.
type tab struct {
	*console
	ctx context.Context
}

// open opens a page in a new tab.
func (c *console) open(path string) *tab {
	c.t.Helper()
	ctx, cancel := chromedp.NewContext(c.ctx)
	c.t.Cleanup(cancel)
	p := &tab{c, ctx}
	if err := chromedp.Listen(ctx, p.complain); err != nil {
		c.t.Fatalf("chromium opens no tab: %v", err)
	}
	call(p, log.Enable, cdp.Empty{})
	call(p, runtime.Enable, cdp.Empty{})
	p.size(1280, 800)
	if c.query != "" { // the browser gets its cookie by it
		p.open("/findings?" + c.query)
		p.sees("h1", "Findings")
	}
	return p.open(path)
}

// open opens another page in the same tab.
func (p *tab) open(path string) *tab {
	p.t.Helper()
	p.do(chromedp.Navigate(p.address + path))
	return p
}

// complain fails the test if a script fails, or does what the page's policy forbids.
func (p *tab) complain(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.t.Errorf("a script of the page failed: %s: %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if text := e.Entry.Text; strings.Contains(text, "Policy") || strings.Contains(text, "Trusted") {
			p.t.Errorf("the browser refused something: %s", text)
		}
	}
}

// call sends the browser one command.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	got, err := chromedp.Call(ctx, command, params)
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
	return got
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("in the browser: %v\nthe page shows:\n%s", err, p.text("body"))
	}
}

// eval returns what a script comes to, as text.
func (p *tab) eval(script string) string {
	p.t.Helper()
	out, err := p.run(script)
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return out
}

// read is eval of a script that changes nothing. It runs again if another page takes the place of the one that it read.
func (p *tab) read(script string) string {
	p.t.Helper()
	var out string
	redistest.Eventually(p.t, patience, script, func() error {
		var err error
		out, err = p.run(script)
		var refused *cdproto.Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != pageGone) {
			p.t.Fatalf("%s: %v", script, err)
		}
		return err
	})
	return out
}

// pageGone is the code with which a browser answers a script whose page has gone.
const pageGone = -32000

func (p *tab) run(script string) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	script = "(async () => String(await (" + script + ")))()"
	return chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
}

// row returns the selector of the row of a name that needs escapes for its colons only.
func row(name string) string {
	return fmt.Sprintf("tr[data-key=%q]", strings.ReplaceAll(name, ":", "%3A"))
}

// text returns the visible texts of all elements that match.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return p.read(fmt.Sprintf(`[...document.querySelectorAll(%q)].filter((e) => e.checkVisibility())
		.map((e) => e.textContent).join("\n")`, selector))
}

func (p *tab) count(selector string) int {
	p.t.Helper()
	var n int
	redistest.Must(p.t, redistest.Err(fmt.Sscan(p.read(fmt.Sprintf("document.querySelectorAll(%q).length", selector)), &n)))
	return n
}

// sees waits until an element shows a text.
func (p *tab) sees(selector, text string) {
	p.t.Helper()
	redistest.Eventually(p.t, patience, fmt.Sprintf("%q in %s", text, selector), func() error {
		if got := p.text(selector); !strings.Contains(got, text) {
			return fmt.Errorf("it has %q; the page has:\n%s", got, p.text("main"))
		}
		return nil
	})
}

// lacks waits until no element shows a text.
func (p *tab) lacks(selector, text string) {
	p.t.Helper()
	redistest.Eventually(p.t, patience, fmt.Sprintf("no %q in %s", text, selector), func() error {
		if got := p.text(selector); strings.Contains(got, text) {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// click clicks on an element once it shows, wherever it has been moved to meanwhile.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(selector))
	p.eval(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// fill replaces what stands in a field.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(selector))
	p.eval(fmt.Sprintf("(document.querySelector(%[1]q).focus(), document.querySelector(%[1]q).select())", selector))
	call(p, input.InsertText, input.InsertTextParams{Text: text})
}

func (p *tab) press(selector, key string) {
	p.t.Helper()
	p.do(chromedp.SendKeys(selector, key))
}

// key presses a key where the focus is. It does not send the character, which a browser sends only if the page
// leaves the key alone.
func (p *tab) key(name string) {
	p.t.Helper()
	code := map[string]int64{"Enter": 13, "ArrowDown": 40}[name]
	down := input.DispatchKeyEventTypeRawKeyDown
	press := input.DispatchKeyEventParams{Type: down, Key: name, WindowsVirtualKeyCode: code}
	call(p, input.DispatchKeyEvent, press)
	if name == "Enter" {
		enter := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeChar, Key: name, Text: "\r"}
		call(p, input.DispatchKeyEvent, enter)
	}
	press.Type = input.DispatchKeyEventTypeKeyUp
	call(p, input.DispatchKeyEvent, press)
}

// front shows the tab in place of others: a browser spares the work for tabs that nobody sees.
func (p *tab) front() {
	p.t.Helper()
	call(p, page.BringToFront, cdp.Empty{})
}

// size sets the size of the page, in CSS pixels.
func (p *tab) size(width, height int64) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1,
	})
}

// scheme has the system be light, or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}
