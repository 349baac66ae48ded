// This file checks what the documents say about files of this repository.

package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

var (
	linkTarget   = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`) // no URLs
	sourceNamed  = regexp.MustCompile("`((?:[a-z_]+/)*[a-z_]+\\.go|(?:[a-z_]+/)+lua)`")
	testNamed    = regexp.MustCompile("`((?:Test|Fuzz)[A-Z0-9]\\w*)`")
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	goBlock      = regexp.MustCompile("(?s)```go\n(.*?)```")
)

// documents returns the paths of the pages at the root, of contrib/README.md, and of every page in docs and in
// deploy.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "contrib/README.md"}
	for _, folder := range []string{"docs", "deploy"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".md") {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	for _, page := range documents(t) {
		for _, link := range linkTarget.FindAllStringSubmatch(doctest.Read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, link[1])
			}
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
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range testDeclared.FindAllStringSubmatch(doctest.Read(t, path), -1) {
				there[found[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		for _, named := range testNamed.FindAllStringSubmatch(doctest.Read(t, page), -1) {
			if !there[named[1]] {
				t.Errorf("%s names %s, which is not there", page, named[1])
			}
		}
	}
}

// Each program in docs/connecting.md also stands in example_connecting_test.go, which is compiled.
func TestProgramsOfDocumentsCompile(t *testing.T) {
	for page, files := range map[string][]string{
		"docs/connecting.md":           {"example_connecting_test.go"},
		"docs/testing-your-program.md": {"holdfasttest/page_test.go", "examples/inventory/main_test.go"},
	} {
		var compiled strings.Builder
		for _, file := range files {
			compiled.WriteString(flat(doctest.Read(t, file)))
		}
		blocks := goBlock.FindAllStringSubmatch(doctest.Read(t, page), -1)
		if len(blocks) == 0 {
			t.Fatalf("%s has no programs", page)
		}
		for _, block := range blocks {
			if !strings.Contains(compiled.String(), flat(block[1])) {
				t.Errorf("%s has a program that is not in %q:\n%s", page, files, block[1])
			}
		}
	}
}

// flat returns text without its indentation.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
