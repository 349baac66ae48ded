// A patch is found by the name of a declaration and by tokens in it. So it stays where it is when
// code moves to another file of its package, and when what is around it changes.

package planted

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// edit replaces a part of a file, from one byte to another, by a text.
type edit struct {
	file     string // its path in the module
	from, to int
	text     string
}

// edit returns what plants the bug.
func (b bug) edit(t *testing.T) edit {
	t.Helper()
	d := find(t, b.at)
	there, old := tokens(d.file, read(t, filepath.Join(root, d.file))[d.from:d.to]), tokens(d.file, b.old)
	at := indices(there, old)
	if len(at) != 1 {
		t.Fatalf("%s has %d times, want once:\n%s", b.at, len(at), b.old)
	}
	if slices.EqualFunc(tokens(d.file, b.new), old, same) {
		t.Fatal("the patch changes nothing")
	}
	return edit{d.file, d.from + there[at[0]].from, d.from + there[at[0]+len(old)-1].to, b.new}
}

// plant returns the file with the bug, by its path in the module.
func (b bug) plant(t *testing.T) map[string]string {
	t.Helper()
	e := b.edit(t)
	return map[string]string{e.file: edited(read(t, filepath.Join(root, e.file)), []edit{e})}
}

// edited returns the text with the edits, which do not overlap.
func edited(text string, edits []edit) string {
	for _, e := range slices.SortedFunc(slices.Values(edits), func(a, b edit) int { return b.from - a.from }) {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text
}

// declaration is a part of a file, from one byte to another.
type declaration struct {
	file     string // its path in the module
	from, to int
	body     struct{ from, to int } // of a function of Go, with its brackets
	results  string                 // what that function returns, as it is written there
}

// find returns the declaration that a bug names.
func find(t *testing.T, at string) declaration {
	t.Helper()
	place, name, _ := strings.Cut(at, " ")
	if filepath.Ext(place) == ".lua" {
		return findInScript(t, place, name)
	}
	d, ok := declarationsOf(t, place)[name]
	if !ok {
		t.Fatalf("%s has no %s", place, name)
	}
	return d
}

// findInScript returns the function with that name in a script, or the whole of it.
func findInScript(t *testing.T, file, function string) declaration {
	t.Helper()
	source := read(t, filepath.Join(root, file))
	if function == "" {
		return declaration{file: file, to: len(source)}
	}
	at := regexp.MustCompile(`(?ms)^local function ` + function + `\(.*?^end$`).FindStringIndex(source)
	if at == nil {
		t.Fatalf("%s has no function %s", file, function)
	}
	return declaration{file: file, from: at[0], to: at[1]}
}

// declared has the declarations of each package that was asked for, by name.
var (
	declaredMu sync.Mutex
	declared   = make(map[string]map[string]declaration)
)

// declarationsOf returns the declarations of the package in a folder, by name.
func declarationsOf(t *testing.T, dir string) map[string]declaration {
	t.Helper()
	declaredMu.Lock()
	defer declaredMu.Unlock()
	if declared[dir] != nil {
		return declared[dir]
	}
	pkg, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	declared[dir] = make(map[string]declaration)
	for _, name := range pkg.GoFiles {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		source := read(t, filepath.Join(root, dir, name))
		at := func(pos token.Pos) int { return fset.Position(pos).Offset }
		for declares, node := range namesIn(file) {
			d := declaration{file: filepath.Join(dir, name), from: at(node.Pos()), to: at(node.End())}
			if f, ok := node.(*ast.FuncDecl); ok && f.Body != nil {
				d.body.from, d.body.to = at(f.Body.Pos()), at(f.Body.End())
				if f.Type.Results != nil {
					d.results = source[at(f.Type.Results.Pos()):at(f.Type.Results.End())]
				}
			}
			declared[dir][declares] = d
		}
	}
	return declared[dir]
}

// namesIn returns what a file declares, by name. That of a method is type.method.
func namesIn(file *ast.File) map[string]ast.Node {
	names := make(map[string]ast.Node)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = d
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = spec
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = spec
					}
				}
			}
		}
	}
	return names
}

// receiver returns the type of which a function is a method, and a dot.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	for {
		switch typ := of.(type) {
		case *ast.StarExpr:
			of = typ.X
		case *ast.IndexExpr:
			of = typ.X
		case *ast.IndexListExpr:
			of = typ.X
		default:
			return of.(*ast.Ident).Name + "."
		}
	}
}

// word is a token of a program, from one byte to another.
type word struct {
	text     string
	from, to int
}

func same(a, b word) bool { return a.text == b.text }

// tokens returns the tokens of a text in the language of the file.
func tokens(file, text string) []word {
	if filepath.Ext(file) == ".lua" {
		return luaTokens(text)
	}
	return goTokens(text)
}

// goTokens returns the tokens of a Go text. A semicolon and the end of a line that stands for one
// are the same; before a closing bracket, and at the end of the text, there is none.
func goTokens(text string) []word {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, 0)
	var words []word
	ends := func() bool { return len(words) > 0 && words[len(words)-1].text == ";" }
	for {
		pos, tok, literal := s.Scan()
		from := file.Offset(pos)
		switch tok {
		case token.EOF:
			if ends() {
				words = words[:len(words)-1]
			}
			return words
		case token.SEMICOLON:
			words = append(words, word{";", from, from + strings.Count(literal, ";")})
			continue
		case token.RBRACE, token.RPAREN:
			if ends() {
				words = words[:len(words)-1]
			}
		}
		if literal == "" {
			literal = tok.String()
		}
		words = append(words, word{literal, from, from + len(literal)})
	}
}

var luaToken = regexp.MustCompile(`--[^\n]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\d[\w.]*|\.\.\.?|[=~<>]=|\S`)

// luaTokens returns the tokens of a Lua text.
func luaTokens(text string) []word {
	var words []word
	for _, at := range luaToken.FindAllStringIndex(text, -1) {
		if found := text[at[0]:at[1]]; !strings.HasPrefix(found, "--") {
			words = append(words, word{found, at[0], at[1]})
		}
	}
	return words
}

// indices returns where the words are among others.
func indices(among, words []word) []int {
	var at []int
	for i := range among {
		if n := len(words); n > 0 && i+n <= len(among) && slices.EqualFunc(among[i:i+n], words, same) {
			at = append(at, i)
		}
	}
	return at
}

// read returns the text of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}
