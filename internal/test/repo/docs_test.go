// This file checks what the documents say about files of this repository.

package repo

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var (
	linkTarget   = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`) // no URLs
	heading      = regexp.MustCompile(`(?m)^#{1,6} +(.+?)[ \t]*$`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sequence     = regexp.MustCompile("(?ms)^```mermaid\nsequenceDiagram.*?^```")
	fencedBlock  = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")
	sourceNamed  = regexp.MustCompile("`((?:[a-z_]+/)*[a-z_]+\\.go|(?:[a-z_]+/)+lua)`")
	testNamed    = regexp.MustCompile("[`, ]((?:Test|Fuzz)[A-Z0-9]\\w*)[`,;]")
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	goBlock      = regexp.MustCompile("(?s)```go\n(.*?)```")
)

// documents returns the paths of the pages at the root, in both languages, of contrib/README.md, and of
// every page in docs and in deploy.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "contrib/README.md"}
	return slices.Concat(pages, filesBelow(t, "docs", ".md"), filesBelow(t, "deploy", ".md"))
}

// filesBelow returns the paths of the files in a folder, and in those below it, whose names end so. What stands in
// a testdata is none of them.
func filesBelow(t *testing.T, folder, end string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, end) {
			all = append(all, filepath.ToSlash(path))
		}
		return err
	})
	redistest.Must(t, err)
	return all
}

// link is where a link of a page leads: a file or a folder, and a heading of it if there is an anchor.
type link struct{ target, anchor string }

// linksOf returns the links of a page to files of this repository.
func linksOf(t *testing.T, page string) []link {
	t.Helper()
	var all []link
	for _, found := range linkTarget.FindAllStringSubmatch(prose(t, page), -1) {
		switch {
		case found[1] != "":
			all = append(all, link{filepath.Join(filepath.Dir(page), found[1]), found[2]})
		case found[2] != "":
			all = append(all, link{page, found[2]})
		}
	}
	return all
}

// prose returns the text of a page without its programs and diagrams.
func prose(t *testing.T, page string) string {
	t.Helper()
	return fencedBlock.ReplaceAllString(doctest.Read(t, page), "")
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page, in their order.
func anchorsOf(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, found := range heading.FindAllStringSubmatch(prose(t, page), -1) {
		anchor := slug(linkText.ReplaceAllString(found[1], "$1"))
		unique := anchor
		for n := 1; slices.Contains(all, unique); n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}
		all = append(all, unique)
	}
	return all
}

// slug returns a heading's text as GitHub writes it in an anchor.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, text)
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	for _, page := range documents(t) {
		for _, to := range linksOf(t, page) {
			if _, err := os.Stat(to.target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, to.target)
				continue
			}
			if to.anchor != "" && strings.HasSuffix(to.target, ".md") && !slices.Contains(anchorsOf(t, to.target), to.anchor) {
				t.Errorf("%s links to %s#%s: there is no such heading", page, to.target, to.anchor)
			}
		}
	}
}

// A reader who begins at docs/README.md finds every page of docs. Decisions and reports have lists of their own,
// to which it leads.
func TestEveryPageIsReachedFromTheMap(t *testing.T) {
	const first = "docs/README.md"
	reached := map[string]bool{first: true}
	for next := []string{first}; len(next) > 0; next = next[1:] {
		for _, to := range linksOf(t, next[0]) {
			page := to.target
			if info, err := os.Stat(page); err == nil && info.IsDir() {
				page = filepath.Join(page, "README.md")
			}
			inside := strings.HasPrefix(page, "docs/") && strings.HasSuffix(page, ".md")
			if _, err := os.Stat(page); err == nil && inside && !reached[page] {
				reached[page] = true
				next = append(next, page)
			}
		}
	}
	for _, page := range documents(t) {
		listed := strings.HasPrefix(page, "docs/decisions/0") || filepath.Dir(page) == "docs/reports"
		if strings.HasPrefix(page, "docs/") && !listed && !reached[page] {
			t.Errorf("no way of links leads from %s to %s", first, page)
		}
	}
}

func TestFilesThatDocumentsNameExist(t *testing.T) {
	for _, page := range documents(t) {
		for _, named := range sourceNamed.FindAllStringSubmatch(doctest.Read(t, page), -1) {
			if _, err := os.Stat(named[1]); err != nil {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}
}

func TestTestsThatDocumentsNameExist(t *testing.T) {
	there := make(map[string]bool)
	for _, file := range filesBelow(t, ".", "_test.go") {
		for _, found := range testDeclared.FindAllStringSubmatch(doctest.Read(t, file), -1) {
			there[found[1]] = true
		}
	}
	for _, page := range append(documents(t), "docs/reports/found.csv") {
		for _, named := range testNamed.FindAllStringSubmatch(doctest.Read(t, page), -1) {
			if !there[named[1]] {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}
}

// In a sequence diagram a semicolon ends the statement: GitHub then shows an error in place of the diagram.
func TestDiagramsHaveNoSemicolon(t *testing.T) {
	for _, page := range documents(t) {
		for _, diagram := range sequence.FindAllString(doctest.Read(t, page), -1) {
			if strings.Contains(diagram, ";") {
				t.Errorf("%s has a semicolon in\n%s", page, diagram)
			}
		}
	}
}

// Each program of a page also stands in a file that is compiled: an example, a test or a program. CI builds that of
// README.md, and it runs docs/getting-started.md. docs/observability.md has exporters that no go.mod here has.
func TestProgramsOfDocumentsCompile(t *testing.T) {
	var compiled []string
	for _, file := range filesBelow(t, ".", ".go") {
		compiled = append(compiled, flat(doctest.Read(t, file)))
	}
	for _, page := range documents(t) {
		if !strings.HasPrefix(page, "docs/") || filepath.Dir(page) == "docs/decisions" || page == "docs/observability.md" {
			continue
		}
		for _, block := range goBlock.FindAllStringSubmatch(doctest.Read(t, page), -1) {
			program := flat(block[1])
			if !slices.ContainsFunc(compiled, func(text string) bool { return strings.Contains(text, program) }) {
				t.Errorf("%s has a program that is in no file of Go:\n%s", page, block[1])
			}
		}
	}
}

var (
	apiPackage  = regexp.MustCompile(`(?m)^package github.com/holdfast-go/holdfast/?(.*)$`)
	apiMethod   = regexp.MustCompile(`(?m)^func \(\w+ \*?([A-Z]\w*)\) ([A-Z]\w*)\(`)
	exampleName = regexp.MustCompile(`(?m)^func Example([A-Z]\w*)\(`)
)

// Every exported type that does more than to print itself has an example for go doc, and so has every method of
// Client. Those of holdfasttest need a testing.TB, which no example has: its page shows them.
func TestEveryTypeHasAnExample(t *testing.T) {
	api := doctest.Read(t, "docs/api.txt")
	packages := apiPackage.FindAllStringSubmatchIndex(api, -1)
	for i, at := range packages {
		dir, end := api[at[2]:at[3]], len(api)
		if i+1 < len(packages) {
			end = packages[i+1][0]
		}
		if dir == "holdfasttest" {
			continue
		}
		examples := examplesIn(t, dir)
		for _, method := range apiMethod.FindAllStringSubmatch(api[at[0]:end], -1) {
			switch wanted := method[1]; {
			case slices.Contains([]string{"String", "Error", "Unwrap", "Close", "ID"}, method[2]):
			case wanted == "Client" && !examples["Client_"+method[2]], !examples[wanted]:
				t.Errorf("package %q has no example of %s, which has the method %s", dir, wanted, method[2])
			}
		}
	}
}

// examplesIn returns what the examples of a package are about: types, functions, and methods as Type_Method.
func examplesIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	redistest.Must(t, err)
	all := make(map[string]bool)
	for _, file := range files {
		for _, found := range exampleName.FindAllStringSubmatch(doctest.Read(t, file), -1) {
			parts := strings.Split(found[1], "_")
			all[parts[0]] = true
			if len(parts) > 1 {
				all[parts[0]+"_"+parts[1]] = true
			}
		}
	}
	return all
}

// flat returns text without its indentation.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
