// Each patched Go file compiles with the rest of its package: a patch that does not plants no bug.

package planted

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The bugs of a package are compiled together, but for those in the same declaration. If that fails,
// each of them is compiled alone.
func TestEachBugCompiles(t *testing.T) {
	c := compiler{fset: token.NewFileSet(), parsed: make(map[string]*ast.File)}
	groups := compatible(t)
	compiled := exports(t, groups)
	c.imports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})
	for _, together := range groups {
		if c.check(t, together) == nil {
			continue
		}
		for _, b := range together {
			if err := c.check(t, []bug{b}); err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
		}
	}
}

// compatible returns the bugs in Go files in groups. Those of a group are in one package, and in
// different declarations.
func compatible(t *testing.T) map[group][]bug {
	groups := make(map[group][]bug)
	before := make(map[declaration]int)
	for _, b := range bugs {
		d := find(t, b.at)
		if filepath.Ext(d.file) == ".go" {
			g := group{filepath.Dir(d.file), before[d]}
			groups[g] = append(groups[g], b)
			before[d]++
		}
	}
	return groups
}

// group names the bugs in a package before each of which n others are in its declaration.
type group struct {
	dir string
	n   int
}

// compiler type-checks packages.
type compiler struct {
	fset    *token.FileSet
	imports types.Importer
	parsed  map[string]*ast.File // by path, without any bug
}

// check returns what keeps the package of the bugs from being compiled with all of them.
func (c *compiler) check(t *testing.T, together []bug) error {
	t.Helper()
	var edits []edit
	for _, b := range together {
		edits = append(edits, b.edit(t))
	}
	dir := filepath.Dir(edits[0].file)
	pkg, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		here := slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.file != filepath.Join(dir, name) })
		file, err := c.parse(t, filepath.Join(root, dir, name), here)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	checks := types.Config{Importer: c.imports}
	_, err = checks.Check(dir, c.fset, files, nil)
	return err
}

// parse returns the syntax of a file with the edits.
func (c *compiler) parse(t *testing.T, path string, edits []edit) (*ast.File, error) {
	t.Helper()
	if len(edits) == 0 && c.parsed[path] != nil {
		return c.parsed[path], nil
	}
	file, err := parser.ParseFile(c.fset, path, edited(read(t, path), edits), parser.SkipObjectResolution)
	if len(edits) == 0 {
		c.parsed[path] = file
	}
	return file, err
}

// exports returns the file with the export data of each package that packages with bugs need.
func exports(t *testing.T, groups map[group][]bug) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	for g := range groups {
		if g.n == 0 {
			args = append(args, "./"+g.dir)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return files
}
