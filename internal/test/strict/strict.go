// Package strict reads scripts as some servers do before they run them. Alibaba's cluster refuses a
// script whose commands are not literals, whose keys are not written KEYS[...], or that names a
// command of Pub/Sub. Dragonfly refuses keys that are not declared. Only tests import it.
package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Findings are the places in a script that a server may refuse, each with its file, its line and
// what is wrong.
type Findings struct {
	Loose   []string // the command is not a literal, or redis.call has another name
	Keyless []string // the command's first key is not written KEYS[...]
	Nested  []string // a command is an argument of another
	Unpacks []string // the script calls unpack
	PubSub  []string // the script runs a command of Pub/Sub
	Hidden  []string // a function has the name of an earlier one
	Spoken  []string // the script names a command of Pub/Sub, be it in a comment
}

// Read returns the findings in a script, which it calls by that name. The error says why the script
// is not Lua.
func Read(name, source string) (f Findings, err error) {
	chunk, err := parse.Parse(strings.NewReader(source), name)
	if err != nil {
		return f, err
	}
	r := reader{name: name, found: &f, called: map[*ast.AttrGetExpr]bool{}}
	visit(reflect.ValueOf(chunk), r.call)
	visit(reflect.ValueOf(chunk), r.mention)
	visit(reflect.ValueOf(chunk), r.define)
	for i, line := range strings.Split(source, "\n") {
		if speaks(line) {
			f.Spoken = append(f.Spoken, fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(line)))
		}
	}
	return f, nil
}

// speaks reports whether a text names a command of Pub/Sub.
func speaks(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"publish", "pubsub", "subscribe"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// reader walks the syntax tree of one script.
type reader struct {
	name   string
	found  *Findings
	called map[*ast.AttrGetExpr]bool // the mentions of redis.call that are calls
	names  []string                  // of the functions
}

// at returns a place in the script with what is wrong there.
func (r *reader) at(line int, what string) string {
	return fmt.Sprintf("%s:%d: %s", r.name, line, what)
}

// call looks at a node that may be a call.
func (r *reader) call(node any) {
	call, ok := node.(*ast.FuncCallExpr)
	if !ok {
		return
	}
	if to, ok := call.Func.(*ast.IdentExpr); ok && to.Value == "unpack" {
		r.found.Unpacks = append(r.found.Unpacks, r.at(call.Line(), "unpack"))
	}
	to, ok := call.Func.(*ast.AttrGetExpr)
	if !ok || !runsCommands(to) {
		return
	}
	r.called[to] = true
	command, ok := call.Args[0].(*ast.StringExpr)
	switch {
	case !ok:
		r.found.Loose = append(r.found.Loose, r.at(call.Line(), "the command is not a literal"))
	case speaks(command.Value):
		r.found.PubSub = append(r.found.PubSub, r.at(call.Line(), command.Value))
	case command.Value == "TIME":
	case len(call.Args) < 2 || !isKey(call.Args[1]):
		r.found.Keyless = append(r.found.Keyless, r.at(call.Line(), command.Value))
	}
	for _, arg := range call.Args {
		visit(reflect.ValueOf(&arg), func(node any) {
			if inner, ok := node.(*ast.AttrGetExpr); ok && runsCommands(inner) {
				r.found.Nested = append(r.found.Nested, r.at(inner.Line(), "a command in another's arguments"))
			}
		})
	}
}

// mention looks at a node that may be redis.call without a call.
func (r *reader) mention(node any) {
	if to, ok := node.(*ast.AttrGetExpr); ok && runsCommands(to) && !r.called[to] {
		r.found.Loose = append(r.found.Loose, r.at(to.Line(), "redis.call under another name"))
	}
}

// define looks at a node that may define a function.
func (r *reader) define(node any) {
	local, ok := node.(*ast.LocalAssignStmt)
	if !ok || len(local.Names) != 1 || len(local.Exprs) != 1 {
		return
	}
	if _, ok := local.Exprs[0].(*ast.FunctionExpr); !ok {
		return
	}
	if slices.Contains(r.names, local.Names[0]) {
		r.found.Hidden = append(r.found.Hidden, r.at(local.Line(), "a second function "+local.Names[0]))
	}
	r.names = append(r.names, local.Names[0])
}

// runsCommands reports whether e is redis.call or redis.pcall.
func runsCommands(e *ast.AttrGetExpr) bool {
	object, ok := e.Object.(*ast.IdentExpr)
	name, named := e.Key.(*ast.StringExpr)
	return ok && named && object.Value == "redis" && (name.Value == "call" || name.Value == "pcall")
}

// isKey reports whether e is written KEYS[...].
func isKey(e ast.Expr) bool {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	object, ok := get.Object.(*ast.IdentExpr)
	return ok && object.Value == "KEYS"
}

// visit calls see with every node of a syntax tree.
func visit(v reflect.Value, see func(node any)) {
	switch v.Kind() {
	case reflect.Interface:
		visit(v.Elem(), see)
	case reflect.Pointer:
		if !v.IsNil() {
			see(v.Interface())
			visit(v.Elem(), see)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), see)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visit(v.Field(i), see)
			}
		}
	}
}
