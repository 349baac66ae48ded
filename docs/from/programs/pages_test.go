// The pages show the programs of this module, byte for byte.

package programs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is a program on a page, behind the comment that names its file.
var block = regexp.MustCompile("(?s)(?:<!-- (programs/\\S+) -->\n)?```(go|java)\n(.*?)```")

// A page shows a program whole. Of a program for the time between it shows a part.
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
			program := read(t, filepath.Join("..", file))
			if part := strings.Contains(file, "/both/"); part && !strings.Contains(program, code) || !part && program != code {
				t.Errorf("%s shows another %s than there is", page, file)
			}
		}
	}
	for _, program := range sources(t) {
		if !shown[program] {
			t.Errorf("no page shows %s", program)
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
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
