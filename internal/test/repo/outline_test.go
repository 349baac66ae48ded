// This file finds in what a translation differs from its page: in its outline, or in what reads the same in every
// language.

package repo

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
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

// differences returns in which ways a translation does not match its page. If the parts differ, it names the first that
// does; if not, it compares the names of code and the measures of each section.
func differences(english, chinese string) []string {
	wanted, wantedSections := outline(english)
	found, foundSections := outline(chinese)
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
	for i, want := range wantedSections {
		here, there := foundSections[i].facts(), want.facts()
		for _, fact := range sortedKeys(here, there) {
			switch {
			case !here[fact]:
				all = append(all, fmt.Sprintf("%q lacks %s, which %q has", foundSections[i].title, fact, want.title))
			case !there[fact]:
				all = append(all, fmt.Sprintf("%q has %s, which %q lacks", foundSections[i].title, fact, want.title))
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

// outline returns the parts of a page in their order, and its sections. The first section stands above all headings.
func outline(page string) ([]part, []section) {
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
	return parts, sections
}

const madePage = `# Title

Text with ` + "`Name`" + ` after 1.25
s.

## First

` + "```go\nf() // says\n```" + `

- one
  goes on
- two

| a | b |
|---|---|
| 1 | 2 |

## Second

    indented

` + "```\nmore\n```\n"

const madeTranslation = `# 标题

1.25 s 之后，` + "`Name`" + `。

## 第一

` + "```go\nf() // says\n```" + `

- 一
- 二

| 甲 | 乙 |
|---|---|
| 1 | 2 |

## 第二

    indented

` + "```\nmore\n```\n"

func TestDifferencesOfATranslation(t *testing.T) {
	if found := differences(madePage, madeTranslation); len(found) > 0 {
		t.Errorf("a translation that matches: %q", found)
	}
	for _, tc := range []struct {
		what     string
		old, new string // in the English page
		says     string
	}{
		{"a heading that the translation lacks", "## Second", "## Between\n\n## Second", "heading of 2"},
		{"a heading at the end", "more\n```\n", "more\n```\n\n## Last\n", "Last"},
		{"a heading of another level", "## Second", "### Second", "heading of 3"},
		{"a heading that only the translation has", "## Second\n", "", "第二"},
		{"a block that the translation lacks", "    indented", "    indented\n\n```\nnew\n```", "new"},
		{"a block at the end", "more\n```\n", "more\n```\n\n```\nlast\n```\n", "last"},
		{"an indented block that the translation lacks", "- one", "    new\n\n- one", "new"},
		{"a block that only the translation has", "```\nmore\n```\n", "", "more"},
		{"a block with another comment", "// says", "// said", "said"},
		{"a block of another language", "```go", "```sh", "```sh"},
		{"blocks in another order", "    indented\n\n```\nmore\n```\n", "```\nmore\n```\n\n    indented\n", "indented"},
		{"a row that the translation lacks", "| 1 | 2 |", "| 1 | 2 |\n| 3 | 4 |", "table of 4"},
		{"a table that the translation lacks", "    indented", "| c |\n|---|\n\n    indented", "table of 2"},
		{"an item that the translation lacks", "- two", "- two\n- three", "list of 3"},
		{"a name that the translation lacks", "`Name`", "`Name` and `Other`", "`Other`"},
		{"a name that only the translation has", "`Name`", "a name", "`Name`"},
		{"another number", "1.25\ns", "1.5\ns", "1.5 s"},
	} {
		if strings.Count(madePage, tc.old) != 1 {
			t.Fatalf("%s: %q is not in the page once", tc.what, tc.old)
		}
		found := strings.Join(differences(strings.Replace(madePage, tc.old, tc.new, 1), madeTranslation), "\n")
		if !strings.Contains(found, tc.says) {
			t.Errorf("%s: %q does not say %q", tc.what, found, tc.says)
		}
	}
}
