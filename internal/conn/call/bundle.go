// Bundles: one script that runs several calls.

package call

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bundle is one script that runs several calls of its parts, which are scripts. To run a script costs
// a server half of what it costs to take and free a lock, so calls that queue for one server go out
// as bundles: see carried in package server. Nobody has written the text of a bundle: NewBundle makes
// it from those of the parts. In it keys and arguments have other numbers, so that each call does
// what it does alone.
type Bundle struct {
	Script *Script
	Parts  []Part
	Most   int // how many calls it has at most
}

// Part is a script that may run in a bundle, and which keys and arguments each of its calls has.
type Part struct {
	Script *Script
	Keys   int   // how many keys
	Args   int   // how many arguments, ARGV[2] and on
	Common []int // the n of each ARGV[n] that all calls in one bundle have in common
}

// Shares reports whether ARGV[n] is the same for all calls of the part in a bundle.
func (p *Part) Shares(n int) bool { return slices.Contains(p.Common, n) }

const (
	// BundleWidth is how many numbers a script in a bundle answers with at most.
	BundleWidth = 4
	// MinBundle is from where on a bundle costs the server less than its calls one by one.
	MinBundle = 3
)

// NewBundle lets calls of the parts go out together, most of them at a time: while a bundle runs,
// for at most some 100 µs, the server serves nobody else. shared is what some of the scripts
// begin with; a bundle has it once. The scripts may name keys and arguments only one by one, as
// KEYS[2]; a helper may take the number of a key. Of what each answers, the first four numbers count.
// NewBundle is for variables of packages: it panics if a script does not fit. It returns the script
// of the bundle.
func NewBundle(name string, most int, shared string, parts ...Part) *Script {
	b := &Bundle{Parts: parts, Most: most}
	for i := range parts {
		if parts[i].Script.Is(Mixed) {
			panic(fmt.Sprintf("holdfast: %s is in a bundle, and answers with texts", parts[i].Script.name))
		}
		parts[i].Script.bundle, parts[i].Script.part = b, i
	}
	b.Script = &Script{name: name, source: b.source(shared)}
	b.Script.sha = digest(b.Script.source)
	return b.Script
}

func (b *Bundle) source(shared string) string {
	var text strings.Builder
	text.WriteString(lua("time", "bundlebegin"))
	for i := range b.Parts {
		if b.Parts[i].Script.publishes() {
			text.WriteString(lua("publish"))
			break
		}
	}
	text.WriteString(renumbered(shared, nil))
	var keys, args []string
	first := 3 // where the arguments that the part's calls have in common begin
	for i := range b.Parts {
		p := &b.Parts[i]
		fmt.Fprintf(&text, "run[%d] = function()\n", i+1)
		if p.Script.minds() {
			text.WriteString("  if late then\n    return {-1}\n  end\n")
		}
		text.WriteString(renumbered(strings.TrimPrefix(p.Script.body, shared), p.places(first)) + "end\n\n")
		keys = append(keys, strconv.Itoa(p.Keys))
		args = append(args, strconv.Itoa(p.Args-len(p.Common)))
		first += len(p.Common)
	}
	fmt.Fprintf(&text, "-- How many keys and arguments of its own a call has, for each part.\n"+
		"local keys, args, firstarg = {%s}, {%s}, %d\n\n", strings.Join(keys, ", "), strings.Join(args, ", "), first-1)
	text.WriteString(lua("bundleend"))
	return text.String()
}

// places returns, for each ARGV[n] of the part's script, what replaces it in a bundle. first is the
// place of the first argument that the part's calls have in common.
func (p *Part) places(first int) map[string]string {
	places := map[string]string{"1": "1"}
	own := 0
	for n := 2; n <= p.Args+1; n++ {
		if p.Shares(n) {
			places[strconv.Itoa(n)] = strconv.Itoa(first)
			first++
			continue
		}
		own++
		places[strconv.Itoa(n)] = fmt.Sprintf("arg + %d", own)
	}
	return places
}

var (
	inBrackets = regexp.MustCompile(`\b(KEYS|ARGV)\[([^\[\]]*)\]`)
	wholeTable = regexp.MustCompile(`\b(KEYS|ARGV)\b(?:[^\[]|$)`)
	comment    = regexp.MustCompile(`(?m)^[ \t]*--.*\n`)
)

// renumbered returns the text with the numbers that keys and arguments have in a bundle, without its
// comments, which have the old numbers.
func renumbered(text string, places map[string]string) string {
	text = comment.ReplaceAllString(text, "")
	if at := wholeTable.FindString(text); at != "" {
		panic(fmt.Sprintf("holdfast: a script in a bundle has %q", at))
	}
	return inBrackets.ReplaceAllStringFunc(text, func(found string) string {
		m := inBrackets.FindStringSubmatch(found)
		if m[1] == "KEYS" {
			return "KEYS[key + " + m[2] + "]"
		}
		place, ok := places[m[2]]
		if !ok {
			panic(fmt.Sprintf("holdfast: a script in a bundle has %s", found))
		}
		return "ARGV[" + place + "]"
	})
}
