// check tells whether Redis keeps the promises. All commands work on a cluster and behind Sentinel.

package operators

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// everywhere runs some of each sort of command on what the URL leads to. first is any of its servers.
func everywhere(t *testing.T, first *redistest.Proc, url string) {
	t.Helper()
	on := func(args ...string) done {
		return run(t, first, append(args, "--url", url)...)
	}
	var owners []string
	for _, name := range []string{"a", "b", "c", "d"} {
		owners = append(owners, kept(t, on("acquire", name, "--lease", "10m", "--as", "job "+name))["OWNER"])
	}
	on("ls", "--sort", "name").want(t, 0, "a     mutex  job a", "b     mutex  job b", "c     mutex  job c", "d     mutex  job d")
	on("inspect", "c", "d").want(t, 0, "c: mutex", "job c", "d: mutex", "job d")
	on("release", "a", "--force", "--yes").want(t, 0, "a: taken from job a (")
	next := kept(t, on("extend", "b", "--lease", "20m", "--owner", owners[1]))
	on("release", "b", "--owner", next["OWNER"]).want(t, 0)
	on("latch", "set", "l", "2").want(t, 0)
	on("latch", "down", "l").want(t, 0, "1\n")
	on("sem", "set", "s", "2", "--counting").want(t, 0)
	on("once", "show", "x", "y").want(t, 0, "not done")
	on("pause", "n", "--for", "1m", "--because", "migration 7").want(t, 0)
	on("inspect", "n").want(t, 0, "n: free", "paused by ", "migration 7")
	on("ls").want(t, 0, "n     free", "migration 7")
	on("resume", "n").want(t, 0)
	on("inspect", "n").want(t, 0, "n: free\n")
	d := on("check")
	if d.want(t, 1, "void"); strings.Contains(d.out, "rights") {
		t.Errorf("%s", d.out)
	}
	listed(t, start(t, first, "console", "--listen", "127.0.0.1:0", "--url", url), "c", "d")
	w := start(t, first, "watch", "c", "--url", url)
	w.Expect("holdfast: watching: c is held now: job c (")
	on("release", "c", "--force", "--yes").want(t, 0)
	expect(t, w, "c  mutex  released by job c (")
}

// listed fails the test unless the page of a console lists these names within a minute.
func listed(t *testing.T, console *redistest.ChildProc, names ...string) {
	t.Helper()
	ctx := redistest.Within(t, soon)
	at := strings.TrimSpace(console.Expect("holdfast: the console is at"))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"events/list", http.NoBody)
	redistest.Must(t, err)
	events, err := http.DefaultClient.Do(request)
	redistest.Must(t, err)
	defer events.Body.Close()
	for lines := bufio.NewScanner(events.Body); lines.Scan(); {
		names = slices.DeleteFunc(names, func(name string) bool {
			return strings.Contains(lines.Text(), fmt.Sprintf(`"name":%q,"kind":"mutex"`, name))
		})
		if len(names) == 0 {
			return
		}
	}
	t.Fatalf("the page does not list %v", names)
}

func TestCheckNamesWhatVoidsAPromise(t *testing.T) {
	server := server(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	d := run(t, server, "check")
	d.want(t, 1, "void  ", "eviction     maxmemory-policy is allkeys-lru",
		"void  ", "persistence  appendonly is off", "2 findings void a promise")
	d = run(t, server, "check", "--json")
	first, second, _ := strings.Cut(d.out, "\n")
	if m := unmarshal(t, first); d.code != 1 || m["problem"] != "eviction" || m["voids_a_promise"] != true || m["server"] == "" {
		t.Errorf("%v", m)
	}
	if m := unmarshal(t, second); m["problem"] != "persistence" {
		t.Errorf("%v", m)
	}
}

// A server near its limit of connections keeps its promises.
func TestCheckNotesWhatVoidsNothing(t *testing.T) {
	server := server(t, "--appendonly", "yes", "--maxclients", "40")
	redistest.Equal(t, run(t, server, "check"), done{}, "%v of a Redis that keeps them, want nothing")
	crowd := server.Client(t, func(o *redis.Options) { o.PoolSize = 40 })
	var held []*redis.Conn
	for range 34 {
		c := crowd.Conn()
		redistest.Must(t, c.Ping(t.Context()).Err())
		held = append(held, c)
	}
	run(t, server, "check").want(t, 0, "note  ", "connections  ", "of 40 connections")
	for _, c := range held {
		c.Close()
	}
}

// A program that uses no latches does not need the rights for them.
func TestCheckCountsTheKindsInUse(t *testing.T) {
	server := server(t, "--appendonly", "yes")
	line := strings.TrimSpace(run(t, server, "check", "orders:*", "--acl", "--kinds", "mutex,check").out)
	if !strings.HasPrefix(line, "ACL SETUSER holdfast on >PASSWORD resetchannels ~orders:* ") {
		t.Fatal(line)
	}
	var args []any
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	redistest.Must(t, server.Admin().Do(t.Context(), args...).Err())
	as := []string{"check", "orders:", "--url", "redis://holdfast:PASSWORD@" + server.Addr()}
	run(t, server, as...).want(t, 1, "rights  a rwlock cannot")
	run(t, server, append(as, "--kinds", "mutex")...).want(t, 0)
	run(t, server, append(as, "--kinds", "mutex,latch")...).want(t, 1, "a latch cannot", "2 findings void")
	as[1] = "users:"
	run(t, server, append(as, "--kinds", "mutex")...).want(t, 1, "rights", "a mutex cannot")
}

// It says nothing of passwords.
func TestCheckACLOfAClusterAsksNobody(t *testing.T) {
	server := server(t)
	d := run(t, server, "check", "orders:*", "--acl", "--url", "redis+cluster://:secret@gone:1", "--user", "app")
	d.want(t, 0, "ACL SETUSER app on >PASSWORD", "+cluster +asking")
	if strings.Contains(d.out+d.err, "secret") {
		t.Error(d.out, d.err)
	}
}
