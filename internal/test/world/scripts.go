// The scripts as they are sent, and the names by which a test speaks of their runs.

package world

import (
	"crypto/sha1"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The scripts that tests name, by the names that a sending carries: the script's own, with a space for the slash.
const (
	LockRun    = "mutex lock" // sent by a call that does not wait
	EnterRun   = "lock enter" // sent by a call that waits
	LookRun    = "lock look"  // sent by a waiter that polls
	RecountRun = "lock recount"
	RenewRun   = "lock renew"
	ManyRun    = "lock renewmany" // renews several holds
	FreeRun    = "lock free"      // a release that assumes that nobody waits
	ReleaseRun = "lock release"   // any other release
	KeepRun    = "lock keep"      // the release of a hold that stays
	MoveRun    = "lock move"
	ClaimRun   = "lock claim" // names the newest, or asks whether it is

	ReadRenewRun = "rwlock rrenew"

	OnceAskRun      = "once ask"
	OnceCompleteRun = "once complete"
	OnceReleaseRun  = "once release"
	OnceForgetRun   = "once forget"
	TickRun         = "once tick"

	BarrierEnterRun   = "barrier enter"
	BarrierLookRun    = "barrier look"
	BarrierBreakRun   = "barrier break"
	BarrierReleaseRun = "barrier release"
	BarrierRenewRun   = "barrier renew"
	BarrierStateRun   = "barrier state"

	SlotsAcquireRun  = "slots acquire"
	SlotsRenewRun    = "slots renew"
	SlotsReleaseRun  = "slots release"
	LimitTakeRun     = "limiter take"
	LimitGiveBackRun = "limiter giveback"
	LimitSetRun      = "limiter set"

	ShardsJoinRun    = "shards join"
	ShardsLeaveRun   = "shards leave"
	ShardsBalanceRun = "shards balance"
	ShardsLookRun    = "shards look"

	PresentRun = "client present" // says who the Client is
	AbsentRun  = "client absent"
	WhoRun     = "inspect who"

	TypeRun = "engine type" // what is stored at a key that should hold something else
)

// Script is a script of the library, and the files that its declaration names.
type Script struct {
	*conn.Script
	Files []string
}

// Scripts returns every script of the library. No package lists them: this reads the declarations. It leaves out fence,
// which sends its scripts as they stand in their files, and not through a Client.
func Scripts(t testing.TB) []Script {
	t.Helper()
	r := reader{t: t}
	for _, pattern := range []string{"*/*.go", "internal/*/*.go"} {
		for _, file := range doctest.Glob(t, pattern) {
			text := doctest.Read(t, file)
			if !strings.HasSuffix(file, "_test.go") && strings.Contains(text, "conn.NewScript(") {
				parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
				redistest.Must(t, err)
				r.folder = path.Dir(file)
				ast.Inspect(parsed, r.visit)
			}
		}
	}
	return r.all
}

// reader reads the declarations of scripts.
type reader struct {
	t      testing.TB
	folder string   // of the package
	files  []string // that the declaration under way names
	all    []Script
}

// visit looks at a node that may declare a script.
func (r *reader) visit(n ast.Node) bool {
	if f, ok := n.(*ast.FuncDecl); ok {
		return f.Name.Name != "once" // its calls declare the scripts
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	r.files = nil
	switch types.ExprString(call.Fun) {
	case "conn.NewScript":
		var with []conn.Trait
		for _, arg := range call.Args[2:] {
			trait, ok := traits[types.ExprString(arg)]
			if !ok {
				r.t.Errorf("%s: not a trait: %s", r.folder, types.ExprString(arg))
			}
			with = append(with, trait)
		}
		r.add(r.text(call.Args[0]), r.text(call.Args[1]), with...)
	case "once": // a function of latch and of semaphore
		body := r.text(call.Args[1])
		if r.folder == "latch" {
			body = doctest.Read(r.t, "latch/lua/generations.lua") + body
		}
		r.add(r.folder+"/"+r.text(call.Args[0]), engine.OnceSource(body))
	}
	return true
}

func (r *reader) add(name, source string, with ...conn.Trait) {
	r.all = append(r.all, Script{conn.NewScript(name, source, with...), r.files})
}

var traits = map[string]conn.Trait{"conn.Timeless": conn.Timeless, "conn.Always": conn.Always, "conn.Mixed": conn.Mixed}

// around are the functions that put texts of other packages around a script's own.
var around = map[string]func(string) string{
	"engine.NumberSource":  engine.NumberSource,
	"engine.UndoingSource": engine.UndoingSource,
	"lockhash.Fenced":      lockhash.Fenced,
	"lockhash.Entering":    lockhash.Entering,
	"lockhash.Releasing":   lockhash.Releasing,
}

// text returns the value of an expression: of a literal, or of a call of lua, within one of around or without.
func (r *reader) text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		text, err := strconv.Unquote(literal.Value)
		redistest.Must(r.t, err)
		return text
	}
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		r.t.Fatalf("%s: cannot tell the text of %s", r.folder, types.ExprString(e))
	}
	of := types.ExprString(call.Fun)
	if add := around[of]; add != nil {
		return add(r.text(call.Args[0]))
	}
	if of != "lua" {
		r.t.Fatalf("%s: cannot tell the text of %s", r.folder, types.ExprString(e))
	}
	var all strings.Builder
	for _, arg := range call.Args {
		file := path.Join(r.folder, "lua", r.text(arg)+".lua")
		r.files = append(r.files, file)
		all.WriteString(doctest.Read(r.t, file))
	}
	return all.String()
}

// load makes the server know every script, and records their names.
func (w *World) load() {
	w.T.Helper()
	w.scripts = ScriptNames(w.T)
	w.Mini.HasScripts(named.sources)
}

// ScriptNames returns the names of the scripts by what a sending carries: the digest, or the source.
func ScriptNames(t testing.TB) map[string]string {
	t.Helper()
	named.once.Do(func() {
		named.names, named.sources = map[string]string{}, map[string]string{}
		for _, s := range slices.Backward(Scripts(t)) { // of two with one text the first gives its name
			sum := sha1.Sum([]byte(s.Source()))
			digest, name := hex.EncodeToString(sum[:]), strings.ReplaceAll(s.Name(), "/", " ")
			named.names[digest], named.names[s.Source()], named.sources[digest] = name, name, s.Source()
		}
	})
	return named.names
}

// named has, when ScriptNames has been called, the names, and the sources by their digests.
var named struct {
	once           sync.Once
	names, sources map[string]string
}
