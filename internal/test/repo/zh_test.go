// This file compares the Chinese pages with the English pages that they translate.

package repo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// chineseOwn is a page of its own: the list of the Chinese pages, and their glossary. It translates no other.
const chineseOwn = "docs/zh-CN/README.md"

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
		for _, difference := range differences(outlineOf(doctest.Read(t, english)), outlineOf(doctest.Read(t, chinese))) {
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
	redistest.Must(t, err)
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
		delete(found, chineseOwn) // the list of what else there is in Chinese, which English pages do not need
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
