// This file compares the Chinese pages with the English pages that they translate.

package repo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// chineseOwn is a page of its own: the list of the Chinese pages, and their glossary. It translates no other.
const chineseOwn = "docs/zh-CN/README.md"

var (
	space    = regexp.MustCompile(`\s+`)
	codeSpan = regexp.MustCompile("`[^`]+`")
	measure  = regexp.MustCompile(`\d+(?:\.\d+)? ?(?:s\b|ms\b|us\b|MB\b|GB\b|%)`)
	listItem = regexp.MustCompile(`^ *(?:[-*]|\d+\.) `)
)

// chinesePages returns the paths of all Chinese pages.
func chinesePages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/zh-CN/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs/zh-CN has %d pages: %v", len(pages), err)
	}
	return append(pages, "README.zh-CN.md")
}

// englishOf returns the path of the English page beside a Chinese one.
func englishOf(chinese string) string {
	if chinese == "README.zh-CN.md" {
		return "README.md"
	}
	return strings.Replace(chinese, "docs/zh-CN/", "docs/", 1)
}

// chineseOf returns the path of a page's translation, or the page itself if it has none.
func chineseOf(page string) string {
	for _, chinese := range []string{"docs/zh-CN/" + strings.TrimPrefix(page, "docs/"), "README.zh-CN.md"} {
		if _, err := os.Stat(chinese); err == nil && chinese != chineseOwn && englishOf(chinese) == page {
			return chinese
		}
	}
	return page
}

func TestChinesePagesMatchTheEnglish(t *testing.T) {
	for _, chinese := range chinesePages(t) {
		english := englishOf(chinese)
		if _, err := os.Stat(english); err != nil {
			t.Errorf("%s translates %s, which is not there", chinese, english)
			continue
		}
		if chinese == chineseOwn {
			continue
		}
		for _, difference := range differences(doctest.Read(t, english), doctest.Read(t, chinese)) {
			t.Errorf("%s: %s", chinese, difference)
		}
	}
}

// A reader finds the other language in the first line below the title.
func TestPagesSwitchBetweenTheLanguages(t *testing.T) {
	for _, chinese := range chinesePages(t) {
		english := englishOf(chinese)
		checkSwitch(t, english, "English | [简体中文]("+linkPath(t, english, chinese)+")")
		checkSwitch(t, chinese, "[English]("+linkPath(t, chinese, english)+") | 简体中文")
	}
}

// linkPath returns the target of a link of one page to another.
func linkPath(t *testing.T, from, to string) string {
	t.Helper()
	path, err := filepath.Rel(filepath.Dir(from), to)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(path)
}

func checkSwitch(t *testing.T, page, want string) {
	t.Helper()
	lines := strings.SplitN(doctest.Read(t, page), "\n", 5)
	if len(lines) < 5 || !strings.HasPrefix(lines[0], "# ") || lines[1] != "" || lines[2] != want || lines[3] != "" {
		t.Errorf("%s does not have this line below its title, alone: %s", page, want)
	}
}

// A link of a Chinese page leads to the heading to which the English one leads: in Chinese where there is such a page.
func TestChineseLinksLeadWhereTheEnglishLead(t *testing.T) {
	for _, chinese := range chinesePages(t) {
		english := englishOf(chinese)
		if chinese == chineseOwn {
			continue
		}
		wanted, found := make(map[string]int), make(map[string]int)
		for _, to := range linksOf(t, english) {
			wanted[chineseOf(to.target)+headingOf(t, to)]++
		}
		for _, to := range linksOf(t, chinese) {
			found[to.target+headingOf(t, to)]++
		}
		delete(wanted, chinese) // the switch lines
		delete(found, english)
		for _, place := range sortedKeys(wanted, found) {
			if wanted[place] != found[place] {
				t.Errorf("%s has %d links to %s, the English page has %d", chinese, found[place], place, wanted[place])
			}
		}
	}
}

// headingOf returns which heading of its target a link leads to, by number: the languages have different anchors.
func headingOf(t *testing.T, to link) string {
	t.Helper()
	if to.anchor == "" || !strings.HasSuffix(to.target, ".md") {
		return ""
	}
	return fmt.Sprintf(", heading %d", slices.Index(anchorsOf(t, to.target), to.anchor)+1)
}

// sortedKeys returns the keys of both maps, each once.
func sortedKeys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// GitHub prints the asterisks of bold text that ends with a punctuation mark, if a character follows at once. In
// English a space follows there.
func TestBoldChineseIsBold(t *testing.T) {
	for _, page := range chinesePages(t) {
		for line := range strings.Lines(prose(t, page)) {
			parts := strings.Split(line, "**")
			for i := 1; i+1 < len(parts); i += 2 {
				before, bold, after := []rune(parts[i-1]), []rune(parts[i]), []rune(parts[i+1])
				opens := len(before) == 0 || !wordRune(before[len(before)-1]) || wordRune(bold[0])
				closes := len(after) == 0 || !wordRune(after[0]) || wordRune(bold[len(bold)-1])
				if !opens || !closes {
					t.Errorf("%s: **%s** is not bold there; move the punctuation mark out of it", page, string(bold))
				}
			}
		}
	}
}

func wordRune(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsPunct(r) && !unicode.IsSymbol(r) }

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
	before := blankLine
	for line := range strings.Lines(page) {
		kind := kindOf(line, before)
		here := &sections[len(sections)-1]
		switch kind {
		case headingLine:
			words := strings.TrimLeft(strings.TrimSpace(line), "# ")
			parts = append(parts, part{kind: "heading", size: strings.Index(line, " "), below: words})
			sections = append(sections, section{title: words})
		case fencedLine, fenceEnd, indentedLine:
			if kind != before && kind != fenceEnd {
				parts = append(parts, part{kind: "code", below: here.title})
			}
			parts[len(parts)-1].text += line
		case tableLine:
			if before != tableLine {
				parts = append(parts, part{kind: "table", below: here.title})
			}
			parts[len(parts)-1].size++
		case itemLine:
			if before != itemLine && before != itemRest {
				parts = append(parts, part{kind: "list", below: here.title})
			}
			parts[len(parts)-1].size++
		}
		if kind != fencedLine && kind != fenceEnd && kind != indentedLine {
			sections[len(sections)-1].text += line
		}
		before = kind
	}
	return parts, sections
}

// lineKind is what a line of a page is.
type lineKind int

const (
	blankLine lineKind = iota
	headingLine
	fencedLine // in a block of code between fences, the opening fence too
	fenceEnd
	indentedLine // in a block of code without fences
	tableLine
	itemLine
	itemRest
	textLine
)

func kindOf(line string, before lineKind) lineKind {
	fence := strings.HasPrefix(line, "```")
	switch {
	case before == fencedLine && fence:
		return fenceEnd
	case before == fencedLine || fence:
		return fencedLine
	case strings.TrimSpace(line) == "":
		return blankLine
	case heading.MatchString(line):
		return headingLine
	case strings.HasPrefix(line, "|"):
		return tableLine
	case strings.HasPrefix(line, "    ") && (before == blankLine || before == indentedLine):
		return indentedLine
	case listItem.MatchString(line):
		return itemLine
	case before == itemLine || before == itemRest:
		return itemRest
	default:
		return textLine
	}
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
