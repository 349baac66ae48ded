// The pages link to the programs of this module, or show parts of them, byte for byte.

package programs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var (
	// block is a part of a program on a page, behind the comment that names its file.
	block = regexp.MustCompile("(?s)(?:<!-- (programs/\\S+) -->\n)?```(go|java)\n(.*?)```")

	// linked is a link of a page to a program.
	linked = regexp.MustCompile(`\]\((programs/[^)]+)\)`)
)

// What a page shows is in the program that it names, and each program is shown or linked by a page.
func TestPagesShowThePrograms(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	shown := make(map[string]bool)
	for _, page := range pages {
		for _, b := range block.FindAllStringSubmatch(read(t, page), -1) {
			file, code := b[1], b[3]
			if file == "" {
				t.Errorf("%s: no comment names the file of this:\n%s", page, code)
				continue
			}
			shown[filepath.Join("..", file)] = true
			if !strings.Contains(read(t, filepath.Join("..", file)), code) {
				t.Errorf("%s shows another %s than there is", page, file)
			}
		}
		for _, l := range linked.FindAllStringSubmatch(read(t, page), -1) {
			shown[filepath.Join("..", l[1])] = true
		}
	}
	for _, program := range sources(t) {
		if !shown[program] {
			t.Errorf("no page shows %s, or links to it", program)
		}
	}
}

// sources returns the programs of this module.
func sources(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "target" {
			return fs.SkipDir
		}
		if filepath.Base(path) == "main.go" || filepath.Ext(path) == ".java" {
			all = append(all, filepath.Join("../programs", path))
		}
		return err
	})
	redistest.Must(t, err)
	slices.Sort(all)
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	redistest.Must(t, err)
	return string(text)
}
