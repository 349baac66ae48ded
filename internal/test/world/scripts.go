// The names of the scripts, by which a test speaks of their runs.

package world

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// The scripts of the mutex, by the names that a sending carries, and the renewal of a reader.
const (
	LockRun    = "lock"  // sent by a call that does not wait
	EnterRun   = "enter" // sent by a call that waits
	RecountRun = "recount"
	RenewRun   = "renew"
	ManyRun    = "renewmany" // renews several holds
	FreeRun    = "free"      // a release that assumes that nobody waits
	ReleaseRun = "release"   // any other release
	KeepRun    = "keep"      // the release of a hold that stays
	MoveRun    = "move"
	StateRun   = "state"

	ReadRenewRun = "rw read renew"
)

// sources lists the scripts of the mutex and of the read-write lock, with the files below the folder
// lua that make up each of them.
var sources = []struct {
	name  string
	of    string // the package
	files string
	trait conn.Trait
}{
	{LockRun, "rlock", "token lock", 0},
	{"stripes", "rlock", "stripes", 0},
	{EnterRun, "internal/lockhash", "token queue enter", 0},
	{RecountRun, "internal/lockhash", "recount", 0},
	{RenewRun, "internal/lockhash", "renew", 0},
	{ManyRun, "internal/lockhash", "renewmany", 0},
	{FreeRun, "internal/lockhash", "free", conn.Timeless},
	{ReleaseRun, "internal/lockhash", "token queue release", conn.Always},
	{KeepRun, "internal/lockhash", "keep", 0},
	{MoveRun, "internal/lockhash", "move", 0},
	{StateRun, "internal/lockhash", "state", conn.Always},

	{"rw lock", "rwlock", "holders marks lock", 0},
	{"rw release", "rwlock", "holders marks release", conn.Always},
	{"rw read lock", "rwlock", "marks rlock", 0},
	{"rw read recount", "rwlock", "holders rrecount", 0},
	{ReadRenewRun, "rwlock", "holders rrenew", 0},
	{"rw read release", "rwlock", "holders marks rrelease", conn.Always},
	{"rw look", "rwlock", "holders look", conn.Always},
}

// load loads every script and records its name.
func (w *World) load() {
	w.T.Helper()
	for _, s := range sources {
		var text strings.Builder
		for _, file := range strings.Fields(s.files) {
			of := s.of
			if file == "token" {
				of = "internal/lockhash" // whichever lock grows it
			}
			text.WriteString(doctest.Read(w.T, of+"/lua/"+file+".lua"))
		}
		source := conn.NewScript(s.name, text.String(), s.trait).Source()
		sum := sha1.Sum([]byte(source))
		w.scripts[hex.EncodeToString(sum[:])] = s.name
		w.scripts[source] = s.name
		if err := w.RDB.ScriptLoad(w.T.Context(), source).Err(); err != nil {
			w.T.Fatalf("load %s: %v", s.name, err)
		}
	}
}
