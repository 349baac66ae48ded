// check tells whether Redis keeps the promises, and exits with 1 only if it does not.

package operators

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestCheckOfARedisThatKeepsThePromises(t *testing.T) {
	server := server(t, "--appendonly", "yes")
	if d := run(t, server, "check"); d.code != 0 || d.out != "" || d.err != "" {
		t.Errorf("%d, %q %q", d.code, d.out, d.err)
	}
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
	crowd := server.Client(t, func(o *redis.Options) { o.PoolSize = 40 })
	var held []*redis.Conn
	for range 34 {
		c := crowd.Conn()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
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
	if err := server.Admin().Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
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
