// This file checks the exported API. A name that users can type is a promise, so a new name, or
// another shape of an old one, must also be put into docs/api.txt:
//
//	go test -run TestTheAPIIsWrittenDown ./internal/test/repo -update

package repo

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var updateAPI = flag.Bool("update", false, "write docs/api.txt in place of comparing with it")

const apiFile = "docs/api.txt"

func TestTheAPIIsWrittenDown(t *testing.T) {
	got := exportedAPI(t, publicPackages(t))
	if *updateAPI {
		redistest.Must(t, os.WriteFile(apiFile, []byte(got), 0o666))
		return
	}
	want, err := os.ReadFile(apiFile)
	redistest.Must(t, err)
	before, after := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for _, line := range before {
		if !slices.Contains(after, line) {
			t.Errorf("gone from the API: %s", line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			t.Errorf("new in the API: %s", line)
		}
	}
	if got != string(want) && !t.Failed() {
		t.Errorf("%s has the same lines in another order", apiFile)
	}
	if t.Failed() {
		t.Logf("if that is meant: go test -run %s . -update", t.Name())
	}
}

// publicPackages returns the folders of the packages that users import: the packages in layers that
// exist and are not internal.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var packages []string
	for _, row := range layers {
		for _, pkg := range row {
			if _, err := os.Stat(pkg); err == nil && !strings.HasPrefix(pkg, "internal/") {
				packages = append(packages, pkg)
			}
		}
	}
	return packages
}

// exportedAPI returns what the packages export, one line for each name.
func exportedAPI(t *testing.T, packages []string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("The exported API, written by: go test -run TestTheAPIIsWrittenDown ./internal/test/repo -update\n")
	for _, pkg := range packages {
		fset := token.NewFileSet()
		var lines []string
		for _, file := range parsePackage(t, fset, pkg) {
			for _, decl := range file.Decls {
				lines = append(lines, exportedLines(fset, decl)...)
			}
		}
		slices.Sort(lines)
		fmt.Fprintf(&b, "\npackage %s\n\n", filepath.ToSlash(filepath.Join(module, pkg)))
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// parsePackage parses the package's files except its tests.
func parsePackage(t *testing.T, fset *token.FileSet, folder string) []*ast.File {
	t.Helper()
	names, err := fs.Glob(os.DirFS(folder), "*.go")
	redistest.Must(t, err)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		redistest.Must(t, err)
		files = append(files, file)
	}
	return files
}

// exportedLines returns a line for each name that decl exports.
func exportedLines(fset *token.FileSet, decl ast.Decl) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if !decl.Name.IsExported() || decl.Recv != nil && !exportedReceiver(decl.Recv) {
			return nil
		}
		return []string{oneLine(fset, &ast.FuncDecl{Recv: decl.Recv, Name: decl.Name, Type: decl.Type})}
	case *ast.GenDecl:
		var lines []string
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				lines = append(lines, typeLines(fset, spec)...)
			case *ast.ValueSpec:
				lines = append(lines, valueLines(fset, decl.Tok, spec)...)
			}
		}
		return lines
	}
	return nil
}

func exportedReceiver(receiver *ast.FieldList) bool {
	of := receiver.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}

// typeLines returns a line for the type and one for each exported field of a
// struct or method of an interface.
func typeLines(fset *token.FileSet, spec *ast.TypeSpec) []string {
	if !spec.Name.IsExported() {
		return nil
	}
	head := "type " + spec.Name.Name
	var members *ast.FieldList
	switch underlying := spec.Type.(type) {
	case *ast.StructType:
		head, members = head+" struct", underlying.Fields
	case *ast.InterfaceType:
		head, members = head+" interface", underlying.Methods
	default:
		return []string{oneLine(fset, &ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{spec}})}
	}
	lines := []string{head}
	for _, member := range members.List {
		of := strings.TrimPrefix(oneLine(fset, member.Type), "func")
		if len(member.Names) == 0 {
			lines = append(lines, head+": "+of) // embedded
		}
		for _, name := range member.Names {
			if !name.IsExported() {
				continue
			}
			if _, isMethod := member.Type.(*ast.FuncType); isMethod && strings.HasSuffix(head, "interface") {
				lines = append(lines, head+": "+name.Name+of)
			} else {
				lines = append(lines, head+": "+name.Name+" "+of)
			}
		}
	}
	return lines
}

// valueLines returns a line for each exported constant or variable. The value of a constant is part
// of the promise. The value of a variable is not.
func valueLines(fset *token.FileSet, kind token.Token, spec *ast.ValueSpec) []string {
	var lines []string
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		one := &ast.ValueSpec{Names: []*ast.Ident{name}, Type: spec.Type}
		if i < len(spec.Values) && (kind == token.CONST || spec.Type == nil) {
			one.Values = []ast.Expr{spec.Values[i]}
		}
		lines = append(lines, oneLine(fset, &ast.GenDecl{Tok: kind, Specs: []ast.Spec{one}}))
	}
	return lines
}

// oneLine prints a node as gofmt does, but on one line and without comments.
func oneLine(fset *token.FileSet, node any) string {
	var b bytes.Buffer
	if err := format.Node(&b, fset, node); err != nil {
		panic(err) // the node comes from a file that was parsed
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
