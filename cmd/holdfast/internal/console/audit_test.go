// Who took what from whom can be found out afterwards, and nothing else. The pattern is a bound, and so is the time for which a
// silent connection stays.

package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestEachReleaseAndEachRefusalPrintsALine(t *testing.T) {
	owner, err := holdfast.ParseOwner("ac9cf787-0000-8000-8000-000000000000:5")
	redistest.Must(t, err)
	const evil = "\x1b[2J\u202e\u009b"
	holds := Holders{{Owner: owner, Who: "billing" + evil, Note: "note" + evil}}
	body := func(name, typed string, from ...string) string {
		text, _ := json.Marshal(wanted{ID: escaped(name), Typed: typed, From: from})
		return string(text)
	}
	for _, c := range []struct {
		what, method, path, body string
		csrf                     bool
		want                     string // "": no line
	}{
		{
			"a release", "POST", "/release", body("a", "a", owner.Short()), true,
			`release by force of a, taken from "billing\x1b[2J\u202e\u009b" (ac9cf787…:5); "note\x1b[2J\u202e\u009b", ` +
				`asked for by 192.0.2.1:1234`,
		},
		{
			"of an evil name", "POST", "/release", body(evil, evil, owner.Short()), true,
			`release by force of "\x1b[2J\u202e\u009b", taken from`,
		},
		{
			"another name was typed", "POST", "/release", body("a", "b", owner.Short()), true,
			"refused: a release of a, asked for by 192.0.2.1:1234: the name that was typed is another one; nothing was changed",
		},
		{
			"others hold it", "POST", "/release", body("a", "a", "ac9cf787…:4"), true,
			"refused: a release of a, asked for by 192.0.2.1:1234: a has changed hands, and nothing was changed",
		},
		{"no release", "POST", "/release", "{", true, "refused: a release, asked for by 192.0.2.1:1234: this is not a release"},
		{
			"another site", "POST", "/release", body("a", "a"), false,
			"refused: POST /release, asked for by 192.0.2.1:1234: this does not come from a page of this console",
		},
		{"a wrong token", "GET", "/?token=a-guess-that-is-wrong", "", false, "refused: a token, asked for by 192.0.2.1:1234: it is wrong"},
		{"the token", "GET", "/?token=a+token+of+this+test", "", false, ""},
		{"a look", "GET", "/session", "", false, ""},
	} {
		var lines []string
		s := serve(t, func(o *Options) {
			o.Token = token
			o.Say = func(line string) { lines = append(lines, line) }
			o.Release = func(_ context.Context, _, _, _ string, willTake func(Holders) error) (Holders, error) {
				return holds, willTake(holds)
			}
		})
		cookie := header("Cookie", s.cookie+"="+s.session)
		if strings.Contains(c.path, "token") {
			cookie = func(*http.Request) {}
		}
		csrf := ""
		if c.csrf {
			csrf = s.csrf
		}
		ask(s, c.method, c.path, c.body, cookie, header("X-Holdfast-CSRF", csrf))
		text := strings.Join(lines, "\n")
		when, line, _ := strings.Cut(text, " ")
		if _, err := time.Parse(time.RFC3339, when); c.want != "" && err != nil || !strings.HasPrefix(line, c.want) || len(lines) > 1 ||
			c.want == "" && text != "" {
			t.Errorf("%s: it prints\n%s\nwant\n%s", c.what, text, c.want)
		}
		for _, secret := range []string{owner.String(), "a-guess", token, s.session, s.csrf, "\x1b", "\u202e", "\u009b"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: the line has %q: %s", c.what, secret, text)
			}
		}
	}
}

// Strangers could fill a disk; what was released is printed all the same.
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
	now = now.Add(time.Minute + time.Second)
	a.refused(r, "a token", "it is wrong")
	redistest.Equal(t, len(lines), refusalsAMinute+3, "after a release and a minute there are %d lines")
}

func TestNamesOutsideOfThePatternAreRefused(t *testing.T) {
	var lines []string
	s := serve(t, func(o *Options) {
		o.Pattern = "orders:*"
		o.Say = func(line string) { lines = append(lines, line) }
		o.Release = func(_ context.Context, name, _, _ string, _ func(Holders) error) (Holders, error) {
			redistest.Equal(t, name, "orders:42", "%q was released")
			return nil, nil
		}
	})
	csrf := header("X-Holdfast-CSRF", s.csrf)
	for name, want := range map[string]int{"orders:42": 200, "other:1": 403, "xorders:1": 403, "ORDERS:1": 403, "\x1b[2J": 403} {
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
				there, here := net.Pipe()
				pipes := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
				pipes.conns <- there
				server := &http.Server{Handler: s}
				served := make(chan error, 1)
				go func() { served <- server.Serve(pipes) }()
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
				_ = here.Close()
				_ = server.Close()
				<-served
			})
		})
	}
}

// A release whose answer is lost may have taken the name. That is no refusal: of refusals, the console prints a bounded number each minute.
func TestAReleaseInDoubtIsPrintedAlways(t *testing.T) {
	var lines []string
	holds := Holders{holderNumber(t, 5)}
	s := serve(t, func(o *Options) {
		o.Say = func(line string) { lines = append(lines, line) }
		o.Release = func(_ context.Context, _, _, _ string, willTake func(Holders) error) (Holders, error) {
			return nil, errors.Join(willTake(holds), holdfast.ErrUnavailable)
		}
	})
	for range 2 * refusalsAMinute {
		ask(s, "POST", "/release", "{", header("X-Holdfast-CSRF", s.csrf))
	}
	lines = nil
	text, _ := json.Marshal(wanted{ID: "a", Typed: "a", From: []string{holds[0].Owner.Short()}})
	answers(t, http.StatusConflict, s, "POST", "/release", string(text), header("X-Holdfast-CSRF", s.csrf))
	if len(lines) != 1 || !strings.Contains(lines[0], "release by force of a, asked for by 192.0.2.1:1234: ") ||
		!strings.HasSuffix(lines[0], "it may have been taken") {
		t.Errorf("it prints %q", lines)
	}
}
