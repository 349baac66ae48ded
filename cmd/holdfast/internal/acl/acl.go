// Package acl writes the line by which an administrator of Redis gives a user the rights that kinds of
// synchronizers need for some names. docs/connecting.md has the same rights, in words.
package acl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/rights"
)

// need is what one kind needs for one pattern of names.
type need struct{ keys, channels, commands []string }

// ofEvery are the commands that every kind needs; ofClusters those that it needs in a cluster too.
var (
	ofEvery    = strings.Fields("evalsha eval time ping publish subscribe unsubscribe")
	ofClusters = strings.Fields("cluster asking pubsub spublish ssubscribe sunsubscribe")
)

// The commands that no table of package rights has.
var (
	ofMutex   = strings.Fields("get set pttl pexpire hset hget hdel hexists hgetall zadd zrem zcard zscore zrange pubsub")
	ofInspect = strings.Fields("type get strlen pttl exists hget hlen hkeys hexists hscan hgetall hmget " +
		"zcard zcount zscore zrange zscan scan")
)

// kinds has each kind, in the order in which help lists them. Each returns what it needs for a pattern of names.
var kinds = []struct {
	name string
	need func(pattern string) (need, error)
}{
	{"mutex", mutex},
	{"fairmutex", func(pattern string) (need, error) { return beyondMutex("fairmutex", pattern) }},
	{"striped", striped},
	{"rwlock", readwrite},
	{"semaphore", func(pattern string) (need, error) { return tabled("semaphore", pattern) }},
	{"permits", func(pattern string) (need, error) { return tabled("permits", pattern) }},
	{"latch", latch},
	{"barrier", func(pattern string) (need, error) { return tabled("barrier", pattern) }},
	{"slots", func(pattern string) (need, error) { return tabled("slots", pattern) }},
	{"shards", func(pattern string) (need, error) { return tabled("shards", pattern) }},
	{"limiter", func(pattern string) (need, error) { return tabled("limiter", pattern) }},
	{"once", oneTime},
	{"leader", func(pattern string) (need, error) { return beyondMutex("leader", pattern) }},
	{"quorum", quorum},
	{"identity", func(string) (need, error) {
		return need{[]string{clients}, nil, rights.OfIdentity("", "").Commands}, nil
	}},
	{"inspect", inspect},
	{"release", forced},
	{"check", func(string) (need, error) { return need{commands: []string{"info"}}, nil }},
}

// clients are the keys in which Clients say who they are.
const clients = "holdfast_client:{holdfast}:*"

// Kinds returns the kinds that SetUser knows.
func Kinds() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Known returns an error if one of the names is no kind.
func Known(names []string) error {
	for _, name := range names {
		if !slices.Contains(Kinds(), name) {
			return fmt.Errorf("%q is no kind: want one of %s", name, strings.Join(Kinds(), ", "))
		}
	}
	return nil
}

// Tried returns the kinds that Client.Check tries out for those kinds: what some of them do, a Mutex does for them.
func Tried(of []string) []string {
	tried := slices.Clone(of)
	if slices.ContainsFunc(of, func(k string) bool { return slices.Contains([]string{"fairmutex", "striped", "leader", "quorum"}, k) }) {
		tried = append(tried, "mutex")
	}
	return tried
}

// SetUser returns the command that makes a user with the rights that those kinds need for names that match the
// patterns. The password is to be put in. In a Space with a prefix the user may use all keys and channels of
// the prefix.
func SetUser(user string, space keys.Space, patterns, of []string, cluster bool) (string, error) {
	all := need{commands: slices.Clone(ofEvery)}
	if cluster {
		all.commands = append(all.commands, ofClusters...)
	}
	for _, k := range kinds {
		if !slices.Contains(of, k.name) {
			continue
		}
		for _, pattern := range patterns {
			n, err := k.need(pattern)
			if err != nil {
				return "", fmt.Errorf("%s, which a %s should have: %w", pattern, k.name, err)
			}
			all.add(n.inAnySlot(pattern))
		}
	}
	if space != "" {
		all.keys, all.channels = []string{space.Pattern("*")}, []string{space.Pattern("*")}
	}
	parts := []string{"ACL", "SETUSER", word(user), "on", ">PASSWORD", "resetchannels"}
	parts = append(parts, rules("~", all.keys)...)
	parts = append(parts, rules("&", all.channels)...)
	parts = append(parts, rules("+", all.commands)...)
	return strings.Join(parts, " "), nil
}

// add adds what another kind needs.
func (n *need) add(more need) {
	n.keys = append(n.keys, more.keys...)
	n.channels = append(n.channels, more.channels...)
	n.commands = append(n.commands, more.commands...)
}

// inAnySlot returns the need with * in place of the number that Holdfast's own keys have before a name with braces,
// if what the number depends on has a wildcard: what the braces hold, or the whole name if they hold nothing.
func (n need) inAnySlot(pattern string) need {
	_, tag, _ := strings.Cut(pattern, "{")
	tag, _, closed := strings.Cut(tag, "}")
	if !closed || tag == "" {
		tag = pattern
	}
	own := strings.TrimSuffix(keys.Space("").OnceRecordAt(pattern), pattern)
	if !strings.ContainsAny(tag, "*?[") || !strings.HasSuffix(own, "}:") {
		return n
	}
	number := own[strings.Index(own, "{"):]
	for i, key := range n.keys {
		n.keys[i] = strings.Replace(key, number, "{*}:", 1)
	}
	for i, channel := range n.channels {
		n.channels[i] = strings.Replace(channel, number, "{*}:", 1)
	}
	return n
}

// rules returns each rule once, in the order in which they came. Redis takes no rule with a space, and redis-cli no rune
// that does not print: there ? stands for each byte.
func rules(prefix string, texts []string) (each []string) {
	for _, text := range texts {
		if rule := word(prefix + unspaced(text)); !slices.Contains(each, rule) {
			each = append(each, rule)
		}
	}
	return each
}

// unspaced returns a pattern with ? for each byte of a rune that is a space or does not print.
func unspaced(pattern string) string {
	var text strings.Builder
	pattern = strings.ReplaceAll(pattern, `\ `, " ")
	for at, r := range pattern {
		_, size := utf8.DecodeRuneInString(pattern[at:])
		if r == ' ' || r == utf8.RuneError || !strconv.IsPrint(r) {
			text.WriteString(strings.Repeat("?", size))
		} else {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// word returns an argument as redis-cli reads it.
func word(text string) string {
	odd := func(r rune) bool { return !strconv.IsPrint(r) }
	if strings.ContainsAny(text, ` "'\`) || strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return text
}
