// The scripts as they are sent. No package lists them: this file reads the declarations of the
// library and works out the arguments with which each calls conn.NewScript.

package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// sentScript is a script of the library, and the Lua files of which it is made.
type sentScript struct {
	*conn.Script
	files []string
}

// sentScripts returns every script of the library.
func sentScripts(t *testing.T) []sentScript {
	t.Helper()
	c := readSources(t)
	var all []sentScript
	for _, pkg := range c.packages {
		for name, value := range pkg.values {
			c.used = nil
			if script, ok := c.eval(pkg, value, nil).(*conn.Script); ok {
				all = append(all, sentScript{script, slices.Clone(c.used)})
			} else if call, ok := value.(*ast.CallExpr); ok && strings.HasSuffix(name, "Script") {
				t.Errorf("cannot tell what %s is in %s", name, c.fset.Position(call.Pos()))
			}
		}
	}
	for at, reached := range c.loads {
		if !reached {
			t.Errorf("cannot tell which script is made at %s", at)
		}
	}
	slices.SortFunc(all, func(a, b sentScript) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// sources are the declarations of the library.
type sources struct {
	t        *testing.T
	fset     *token.FileSet
	packages map[string]*declared // by folder
	loads    map[string]bool      // the places that call conn.NewScript, and whether eval came there
	used     []string             // the Lua files that eval has read
}

// declared is what one package declares, as far as scripts are made of it.
type declared struct {
	imports map[string]string // the folder of each package of the module, by its name
	folder  string
	values  map[string]ast.Expr // of variables
	funcs   map[string]*ast.FuncDecl
}

// readSources reads every package of the library, but for fence: it sends its scripts as they stand in their
// files, and not through a Client.
func readSources(t *testing.T) *sources {
	t.Helper()
	c := &sources{t: t, fset: token.NewFileSet(), packages: map[string]*declared{}, loads: map[string]bool{}}
	for _, pattern := range []string{"*/*.go", "internal/*/*.go"} {
		files, err := fs.Glob(os.DirFS("."), pattern)
		redistest.Must(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") && path.Dir(file) != "fence" {
				c.readFile(file)
			}
		}
	}
	return c
}

func (c *sources) readFile(name string) {
	file, err := parser.ParseFile(c.fset, name, doctest.Read(c.t, name), parser.ParseComments)
	redistest.Must(c.t, err)
	folder := path.Dir(name)
	d := c.packages[folder]
	if d == nil {
		d = &declared{map[string]string{}, folder, map[string]ast.Expr{}, map[string]*ast.FuncDecl{}}
		c.packages[folder] = d
	}
	for _, spec := range file.Imports {
		if at, err := strconv.Unquote(spec.Path.Value); err == nil && strings.HasPrefix(at, module+"/") {
			d.imports[path.Base(at)] = strings.TrimPrefix(at, module+"/")
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				d.funcs[decl.Name.Name] = decl
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					for i, value := range spec.Values {
						d.values[spec.Names[i].Name] = value
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && loads(call) {
			c.loads[c.fset.Position(call.Pos()).String()] = false
		}
		return true
	})
}

// loads reports whether call is one of conn.NewScript.
func loads(call *ast.CallExpr) bool {
	to, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := to.X.(*ast.Ident)
	return ok && from.Name == "conn" && to.Sel.Name == "NewScript"
}

// traits are those that eval knows by their names.
var traits = map[string]conn.Trait{"Timeless": conn.Timeless, "Always": conn.Always, "Mixed": conn.Mixed}

// eval returns the value of an expression in a package if that is a text, a Trait or a script, nil
// otherwise. args are the values of the parameters of the function in which it stands.
func (c *sources) eval(in *declared, e ast.Expr, args map[string]any) any {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		left, isText := c.eval(in, e.X, args).(string)
		right, areTexts := c.eval(in, e.Y, args).(string)
		if e.Op == token.ADD && isText && areTexts {
			return left + right
		}
	case *ast.Ident:
		if value, ok := args[e.Name]; ok {
			return value
		}
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok && from.Name == "conn" {
			return traits[e.Sel.Name]
		}
	case *ast.CallExpr:
		return c.evalCall(in, e, args)
	}
	return nil
}

// texts returns the texts of the files that a call of lua names: see conn.Texts.
func (c *sources) texts(in *declared, call *ast.CallExpr) string {
	var all strings.Builder
	for _, arg := range call.Args {
		name, _ := c.eval(in, arg, nil).(string)
		file := path.Join(in.folder, "lua", name+".lua")
		c.used = append(c.used, file)
		all.WriteString(doctest.Read(c.t, file))
	}
	return all.String()
}

// evalCall is eval of a call: of conn.NewScript, of lua, or of a function that only returns an expression.
func (c *sources) evalCall(in *declared, call *ast.CallExpr, args map[string]any) any {
	if loads(call) {
		c.loads[c.fset.Position(call.Pos()).String()] = true
		return c.load(in, call, args)
	}
	at, name := in, ""
	switch to := call.Fun.(type) {
	case *ast.Ident:
		if name = to.Name; name == "lua" {
			return c.texts(in, call)
		}
	case *ast.SelectorExpr:
		if to.Sel.Name == "Briefly" {
			return c.eval(in, to.X, args)
		}
		if from, ok := to.X.(*ast.Ident); ok {
			at, name = c.packages[in.imports[from.Name]], to.Sel.Name
		}
	}
	if at == nil || at.funcs[name] == nil || at.funcs[name].Body == nil {
		return nil
	}
	f := at.funcs[name]
	result, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return nil
	}
	given := map[string]any{}
	for _, field := range f.Type.Params.List {
		for _, param := range field.Names {
			if len(given) < len(call.Args) {
				given[param.Name] = c.eval(in, call.Args[len(given)], args)
			}
		}
	}
	return c.eval(at, result.Results[0], given)
}

// load makes the script as conn.NewScript does.
func (c *sources) load(in *declared, call *ast.CallExpr, args map[string]any) any {
	name, named := c.eval(in, call.Args[0], args).(string)
	source, ok := c.eval(in, call.Args[1], args).(string)
	var with []conn.Trait
	for _, arg := range call.Args[2:] {
		trait, _ := c.eval(in, arg, args).(conn.Trait)
		if trait == 0 {
			ok = false
		}
		with = append(with, trait)
	}
	if !named || !ok {
		c.t.Errorf("cannot work out the script at %s", c.fset.Position(call.Pos()))
		return nil
	}
	return conn.NewScript(name, source, with...)
}
