// Each patched file compiles: a patch that does not compile plants no bug.

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
	"strings"
	"testing"
)

// Each patched Go file compiles with the rest of its package.
func TestEachBugCompiles(t *testing.T) {
	fset := token.NewFileSet()
	compiled := exports(t)
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})
	for _, b := range bugs {
		file := find(t, b.at).file
		if filepath.Ext(file) != ".go" {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			files := parse(t, fset, filepath.Join(root, filepath.Dir(file)), filepath.Base(file), b.plant(t)[file])
			checks := types.Config{Importer: imports, Error: func(err error) { t.Error(err) }}
			_, _ = checks.Check(filepath.Dir(file), fset, files, nil) // Error has been called with each error
		})
	}
}

// exports returns the file with the export data of each package that the module needs.
func exports(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps",
		"-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}", "./...")
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

// parse returns the files of the package in dir. One of the files has the given text in place of
// its own.
func parse(t *testing.T, fset *token.FileSet, dir, patched, text string) []*ast.File {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		var source any
		if name == patched {
			source = text
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
