// This file finds in what a translation differs from its page: in its outline, or in what reads the same in every
// language.

package repo

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

var (
	space    = regexp.MustCompile(`\s+`)
	codeSpan = regexp.MustCompile("`[^`]+`")
	measure  = regexp.MustCompile(`\d+(?:\.\d+)? ?(?:s\b|ms\b|us\b|MB\b|GB\b|%)`)
	listItem = regexp.MustCompile(`(?m)^ *(?:[-*]|\d+\.) `)

	// pieces are blocks of code with fences and without, headings, tables and lists.
	pieces = regexp.MustCompile("(?m)(?s:^```.*?\n```[ \t]*$)|(?:^    .*\n)+|^#{1,6} +.+$|(?:^\\|.*\n)+|^ *(?:[-*]|\\d+\\.) .*\n(?:.+\n)*")
)

// part is a piece of a page that its translation has too.
type part struct {
	kind  string // heading, code, table or list
	size  int    // the level of a heading; the lines of a table; the items of a list
	text  string // of code: all of it, with its fences
	below string // the heading above it, or its own words; in the page's own language
}

func (p part) matches(other part) bool {
	return p.kind == other.kind && p.size == other.size && p.text == other.text
}

func (p part) String() string {
	if p.kind == "code" {
		return fmt.Sprintf("code below %q:\n%s", p.below, p.text)
	}
	return fmt.Sprintf("%s of %d at %q", p.kind, p.size, p.below)
}

// section is the text below one heading, up to the next, without its blocks of code.
type section struct {
	title string
	text  string
}

// outline is a page's parts in their order, and its sections. The first section stands above all headings.
type outline struct {
	parts    []part
	sections []section
}

// differences returns in which ways a translation does not match its page. If the parts differ, it names the first that
// does; if not, it compares the names of code and the measures of each section.
func differences(english, chinese outline) []string {
	wanted, found := english.parts, chinese.parts
	for i, want := range wanted {
		if i >= len(found) {
			return []string{fmt.Sprintf("lacks the last parts, from the %v", want)}
		}
		if !want.matches(found[i]) {
			return []string{fmt.Sprintf("has the %v\nwhere the English page has the %v", found[i], want)}
		}
	}
	if len(found) > len(wanted) {
		return []string{fmt.Sprintf("has parts that the English page lacks, from the %v", found[len(wanted)])}
	}
	var all []string
	for i, want := range english.sections {
		here, there := chinese.sections[i].facts(), want.facts()
		for _, fact := range sortedKeys(here, there) {
			switch {
			case !here[fact]:
				all = append(all, fmt.Sprintf("%q lacks %s, which %q has", chinese.sections[i].title, fact, want.title))
			case !there[fact]:
				all = append(all, fmt.Sprintf("%q has %s, which %q lacks", chinese.sections[i].title, fact, want.title))
			}
		}
	}
	return all
}

// facts returns what reads the same in both languages: names of code, and numbers with a unit.
func (s section) facts() map[string]bool {
	all := make(map[string]bool)
	text := space.ReplaceAllString(s.text, " ")
	for _, name := range codeSpan.FindAllString(text, -1) {
		all[name] = true
	}
	for _, number := range measure.FindAllString(codeSpan.ReplaceAllString(text, ""), -1) {
		all[number] = true
	}
	return all
}

func outlineOf(page string) outline {
	var parts []part
	sections := []section{{}}
	end := 0
	for _, at := range pieces.FindAllStringIndex(page, -1) {
		here := &sections[len(sections)-1]
		here.text += page[end:at[0]]
		end = at[1]
		switch found := page[at[0]:at[1]]; {
		case strings.HasPrefix(found, "```") || strings.HasPrefix(found, "    "):
			parts = append(parts, part{"code", 0, found, here.title})
		case found[0] == '#':
			words := strings.TrimLeft(strings.TrimSpace(found), "# ")
			parts = append(parts, part{"heading", strings.Index(found, " "), "", words})
			sections = append(sections, section{words, found})
		case found[0] == '|':
			parts = append(parts, part{"table", strings.Count(found, "\n"), "", here.title})
			here.text += found
		default:
			parts = append(parts, part{"list", len(listItem.FindAllString(found, -1)), "", here.title})
			here.text += found
		}
	}
	sections[len(sections)-1].text += page[end:]
	return outline{parts, sections}
}

// A check that never fails proves nothing: from each page each part, name and measure is left out once, or has another
// text, and the translation must differ.
func TestEachDifferenceOfATranslationIsFound(t *testing.T) {
	for _, chinese := range chinesePages(t) {
		if chinese == chineseOwn {
			continue
		}
		english, translation := doctest.Read(t, englishOf(chinese)), outlineOf(doctest.Read(t, chinese))
		differs := func(what string, at []int, other string) {
			if len(differences(outlineOf(english[:at[0]]+other+english[at[1]:]), translation)) == 0 {
				t.Errorf("%s matches its page without the %s %q", chinese, what, english[at[0]:at[1]])
			}
		}
		for _, at := range pieces.FindAllStringIndex(english, -1) {
			found := english[at[0]:at[1]]
			differs("part", at, "")
			differs("part, once", at, found+"\n\n"+found)
			switch found[0] {
			case '`', ' ':
				differs("last character of", []int{at[1] - 6, at[1] - 5}, "~")
			case '#':
				differs("level of", []int{at[0], at[0]}, "#")
			}
		}
		for _, of := range outlineOf(english).sections {
			for fact := range of.facts() {
				if at := strings.Index(english, fact); at >= 0 && strings.Count(english, fact) == 1 {
					differs("name or measure", []int{at, at + len(fact)}, "other")
				}
			}
		}
	}
}
