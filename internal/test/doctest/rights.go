// The rights that docs/connecting.md gives a user of Redis.

package doctest

import (
	"regexp"
	"strings"
	"testing"
)

var (
	rightsOfEvery = regexp.MustCompile("(?s)```\nACL SETUSER holdfast on >secret(.*?)```")
	rightsOfKind  = regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z, ]+) \| (.*) \| (.*) \|$`)
	right         = regexp.MustCompile("[~&+][^ `\n]+|resetchannels")
	rightsOfOther = regexp.MustCompile(`those of ([A-Z][A-Za-z]+)`)
)

// DocumentedRights returns the rights that docs/connecting.md gives a user: the rights for every
// kind, and the rights of each kind.
func DocumentedRights(t testing.TB) (every []string, of map[string][]string) {
	t.Helper()
	const page = "docs/connecting.md"
	text := Read(t, page)
	block := rightsOfEvery.FindStringSubmatch(text)
	if block == nil {
		t.Fatalf("%s has no rights for every kind", page)
	}
	every = right.FindAllString(block[1], -1)
	of = make(map[string][]string)
	for _, row := range rightsOfKind.FindAllStringSubmatch(text, -1) {
		var rules []string
		for column, text := range row[2:4] { // keys and channels, commands
			rules = append(rules, right.FindAllString(text, -1)...)
			for _, other := range rightsOfOther.FindAllStringSubmatch(text, -1) {
				for _, rule := range of[other[1]] { // that row stands above this one
					if (rule[0] == '+') == (column == 1) {
						rules = append(rules, rule)
					}
				}
			}
		}
		for kind := range strings.SplitSeq(row[1], ", ") {
			of[kind] = append(of[kind], rules...) // a kind may have several lines
		}
	}
	return every, of
}
