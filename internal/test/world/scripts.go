// The names of the scripts, by which a test speaks of their runs.

package world

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// The scripts of the mutex, by the names that a sending carries, and the renewals of a read-write
// lock.
const (
	LockRun    = "lock"  // sent by a call that does not wait
	EnterRun   = "enter" // sent by a call that waits
	RecountRun = "recount"
	RenewRun   = "renew"
	ManyRun    = "renewmany" // renews several holds
	FreeRun    = "free"      // a release that assumes that nobody waits
	ReleaseRun = "release"   // any other release
	MoveRun    = "move"
	StateRun   = "state"

	WriteRenewRun = "rw renew"
	ReadRenewRun  = "rw read renew"
)

// sources lists the files that make up each script of the mutex and of the read-write lock.
var sources = map[string][]string{
	LockRun:     {"internal/lockhash/lua/token.lua", "rlock/lua/lock.lua"},
	EnterRun:    {"internal/lockhash/lua/token.lua", "internal/lockhash/lua/queue.lua", "internal/lockhash/lua/enter.lua"},
	RecountRun:  {"internal/lockhash/lua/recount.lua"},
	RenewRun:    {"internal/lockhash/lua/renew.lua"},
	"renewmany": {"internal/lockhash/lua/renewmany.lua"},
	FreeRun:     {"internal/lockhash/lua/free.lua"},
	ReleaseRun:  {"internal/lockhash/lua/token.lua", "internal/lockhash/lua/queue.lua", "internal/lockhash/lua/release.lua"},
	MoveRun:     {"internal/lockhash/lua/move.lua"},
	StateRun:    {"internal/lockhash/lua/state.lua"},
	"stripes":   {"rlock/lua/stripes.lua"},

	"rw lock":         {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/lock.lua"},
	"rw recount":      {"rwlock/lua/recount.lua"},
	WriteRenewRun:     {"rwlock/lua/renew.lua"},
	"rw release":      {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/release.lua"},
	"rw read lock":    {"rwlock/lua/marks.lua", "rwlock/lua/rlock.lua"},
	"rw read recount": {"rwlock/lua/holders.lua", "rwlock/lua/rrecount.lua"},
	ReadRenewRun:      {"rwlock/lua/holders.lua", "rwlock/lua/rrenew.lua"},
	"rw read release": {"rwlock/lua/holders.lua", "rwlock/lua/marks.lua", "rwlock/lua/rrelease.lua"},
	"rw look":         {"rwlock/lua/holders.lua", "rwlock/lua/look.lua"},
}

// load loads every script and records its name.
func (w *World) load() {
	w.T.Helper()
	for script, files := range sources {
		var source strings.Builder
		for _, file := range files {
			source.WriteString(doctest.Read(w.T, file))
		}
		sum := sha1.Sum([]byte(source.String()))
		w.scripts[hex.EncodeToString(sum[:])] = script
		w.scripts[source.String()] = script
		if err := w.RDB.ScriptLoad(w.T.Context(), source.String()).Err(); err != nil {
			w.T.Fatalf("load %s: %v", script, err)
		}
	}
}
