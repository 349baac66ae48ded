// Who took what from whom can be found out afterwards, and nothing else. The pattern is a bound, and so is the time for which a
// silent connection stays.

package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// What a release by force comes to is answered and printed, without anybody's secret and whatever the name has in it.
func TestEachReleaseAndEachRefusalPrintsALine(t *testing.T) {
	holds := Holders{holderNumber(t, 5)}
	holder := holds[0].Owner
	const evil = "\x1b[2J\u202e\u009b"
	holds[0].Who, holds[0].Note = "billing"+evil, "note"+evil
	body := func(name, typed string, from ...string) string {
		text, _ := json.Marshal(wanted{ID: escaped(name), Typed: typed, From: from})
		return string(text)
	}
	for _, c := range []struct {
		what   string
		name   string
		body   string
		fails  error
		code   int
		says   string
		prints string
	}{
		{
			"a release", "a", body("a", "a", holder.Short()), nil, 200, `"owner":"ac9cf787…:5"`,
			`release by force of a, taken from "billing\x1b[2J\u202e\u009b" (ac9cf787…:5); "note\x1b[2J\u202e\u009b", ` +
				`asked for by 192.0.2.1:1234`,
		},
		{
			"of an evil name", evil, body(evil, evil, holder.Short()), nil, 200, `"owner":"ac9cf787…:5"`,
			`release by force of "\x1b[2J\u202e\u009b", taken from`,
		},
		{
			"of an odd name, typed as the page shows it", "a/b ✓\xff", body("a/b ✓\xff", `"a/b ✓\xff"`, holder.Short()), nil, 200,
			`"owner":"ac9cf787…:5"`, `release by force of "a/b ✓\xff", taken from`,
		},
		{
			"another name was typed", "a", body("a", "b", holder.Short()), nil, 422, "nothing was changed",
			"refused: a release of a, asked for by 192.0.2.1:1234: the name that was typed is another one; nothing was changed",
		},
		{
			"others hold it", "a", body("a", "a", "ac9cf787…:4"), nil, 409, "has changed hands",
			"refused: a release of a, asked for by 192.0.2.1:1234: a has changed hands, and nothing was changed",
		},
		{"nobody was seen", "a", body("a", "a"), nil, 409, "has changed hands", "refused: a release of a"},
		{
			"it fails", "a", body("a", "a", holder.Short()), errors.New("no luck"), 409, "no luck",
			"release by force of a, asked for by 192.0.2.1:1234: no luck; it may have been taken",
		},
		{"no release", "", "{", nil, 400, "not a release", "refused: a release, asked for by 192.0.2.1:1234: this is not a release"},
	} {
		var printed []string
		s := serve(t, func(o *Options) {
			o.Say = func(line string) { printed = append(printed, line) }
			o.Release = func(_ context.Context, name, _, _ string, willTake func(Holders) error) (Holders, error) {
				redistest.Equal(t, name, c.name, "%q, want %q (%s)", c.name, c.what)
				if err := willTake(holds); err != nil {
					return nil, err
				}
				return holds, c.fails
			}
		})
		w := ask(s, "POST", "/release", c.body, header("X-Holdfast-CSRF", s.csrf))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) || strings.Contains(w.Body.String(), holder.String()) {
			t.Errorf("%s: %d %s", c.what, w.Code, w.Body)
		}
		isPrinted(t, s, c.what, printed, c.prints, holder.String())
	}
	s := serve(t, nil)
	w := ask(s, "POST", "/release", body("a", "a"), header("X-Holdfast-CSRF", s.csrf))
	if w.Code != 403 || !strings.Contains(w.Body.String(), "only reads") {
		t.Errorf("read-only: %d %s", w.Code, w.Body)
	}
}

// isPrinted fails the test unless one line was printed, which begins so after its time; none if want is empty.
func isPrinted(t *testing.T, s *Server, what string, printed []string, want string, secrets ...string) {
	t.Helper()
	text := strings.Join(printed, "\n")
	when, line, _ := strings.Cut(text, " ")
	_, err := time.Parse(time.RFC3339, when)
	if want == "" && text != "" || want != "" && (err != nil || len(printed) != 1 || !strings.HasPrefix(line, want)) {
		t.Errorf("%s: it prints\n%s\nwant\n%s", what, text, want)
	}
	for _, secret := range append(secrets, token, s.session, s.csrf, "\x1b", "\u202e", "\u009b") {
		if strings.Contains(text, secret) {
			t.Errorf("%s: the line has %q: %s", what, secret, text)
		}
	}
}

func TestAWrongTokenAndAnotherSitePrintALine(t *testing.T) {
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/release", "refused: POST /release, asked for by 192.0.2.1:1234: this does not come from a page of this console"},
		{"GET", "/?token=a-guess-that-is-wrong", "refused: a token, asked for by 192.0.2.1:1234: it is wrong"},
		{"GET", "/?token=a+token+of+this+test", ""},
		{"GET", "/session", ""},
	} {
		var printed []string
		s := serve(t, func(o *Options) {
			o.Token = token
			o.Say = func(line string) { printed = append(printed, line) }
		})
		ask(s, c.method, c.path, "", func(r *http.Request) {
			if !strings.Contains(c.path, "token") {
				r.Header.Set("Cookie", s.cookie+"="+s.session)
			}
		})
		isPrinted(t, s, c.path, printed, c.want, "a-guess")
	}
}

// Strangers could fill a disk; what was released is printed all the same, and what may have been: that is no refusal.
func TestRefusalsThatArePrintedAreBounded(t *testing.T) {
	var lines []string
	now := time.Now()
	a := &audit{say: func(line string) { lines = append(lines, line) }, now: func() time.Time { return now }}
	r := &http.Request{RemoteAddr: "192.0.2.1:1"}
	for range 3 * refusalsAMinute {
		a.refused(r, "a token", "it is wrong")
	}
	if n := len(lines); n != refusalsAMinute+1 || !strings.Contains(lines[n-1], "not printed") {
		t.Errorf("%d lines, the last of which is %q", n, lines[n-1])
	}
	a.released(r, "a", nil)
	a.doubted(r, "a", errDoubt)
	now = now.Add(time.Minute + time.Second)
	a.refused(r, "a token", "it is wrong")
	redistest.Equal(t, len(lines), refusalsAMinute+4, "after a release, one in doubt, and a minute there are %d lines")
}

func TestNamesOutsideOfThePatternAreRefused(t *testing.T) {
	var lines []string
	s := serve(t, func(o *Options) {
		o.Pattern = "orders:*"
		o.Say = func(line string) { lines = append(lines, line) }
		o.Release = func(_ context.Context, name, _, _ string, _ func(Holders) error) (Holders, error) {
			if !strings.HasPrefix(name, "orders:") {
				t.Errorf("%q was released", name)
			}
			return nil, nil
		}
	})
	csrf := header("X-Holdfast-CSRF", s.csrf)
	for name, want := range map[string]int{
		"orders:42": 200, "orders:a/b//../c ?#%&+ü\x00": 200,
		"other:1": 403, "xorders:1": 403, "ORDERS:1": 403, "\x1b[2J": 403,
	} {
		body, _ := json.Marshal(wanted{ID: escaped(name), Typed: name})
		for what, got := range map[string]int{
			"its page":   ask(s, "GET", "/lock/"+escaped(name), "").Code,
			"by a query": ask(s, "GET", "/lock?name="+escaped(name), "").Code,
			"a release":  ask(s, "POST", "/release", string(body), csrf).Code,
		} {
			redistest.Equal(t, got, want, "%d, want %d (%q, %s)", want, name, what)
		}
		if want != 200 { // the stream of a name within does not end
			answers(t, want, s, "GET", "/events/lock?name="+escaped(name), "")
		}
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "refused: a release of other:1") || strings.Contains(text, "\x1b") {
		t.Errorf("it prints\n%s", text)
	}
}

func TestConnectionsThatKeepSilentAreClosed(t *testing.T) {
	for _, c := range []struct {
		what, sends string
		reads       bool
	}{
		{"a body that does not come", "GET /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", true},
		{"a body without an end", "GET /session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"the same of a page, without the token", "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", true},
		{"a release that does not come", "POST /release HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", true},
		{"nobody reads", strings.Repeat("GET /page/console.css HTTP/1.1\r\nHost: localhost\r\n\r\n", 100), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, func(o *Options) { o.Token = token })
			synctest.Test(t, func(t *testing.T) {
				here, end := throughPipe(s)
				defer end()
				sent := make(chan error, 1)
				go func() {
					_, err := io.WriteString(here, c.sends)
					sent <- err
				}()
				ended := make(chan error, 1)
				if c.reads {
					go func() {
						_, err := io.Copy(io.Discard, here)
						ended <- err
					}()
				} else {
					ended = sent // what is not read blocks what is sent, until the server gives up
				}
				select {
				case err := <-ended:
					if !c.reads && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("all was taken: %v", err)
					}
				case <-time.After(time.Hour): // of the bubble's clock
					t.Error("after an hour the connection is open")
				}
			})
		})
	}
}
