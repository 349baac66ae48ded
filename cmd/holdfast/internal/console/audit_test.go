// The audit: who took what from whom can be found out afterwards, and nothing else.

package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

func TestEachReleaseAndEachRefusalPrintsALine(t *testing.T) {
	owner, err := holdfast.ParseOwner("ac9cf787-0000-8000-8000-000000000000:5")
	if err != nil {
		t.Fatal(err)
	}
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
	if n := len(lines); n != refusalsAMinute+3 {
		t.Errorf("after a release and a minute there are %d lines", n)
	}
}
