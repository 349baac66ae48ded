// The names of the scripts, by which a test speaks of their runs.

package world

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// The scripts of the mutex, by the names that a sending carries; the renewal of a reader; and the
// scripts of a Once, of ticks, of a barrier, of slots and of identities.
const (
	LockRun    = "lock"  // sent by a call that does not wait
	EnterRun   = "enter" // sent by a call that waits
	LookRun    = "look"  // sent by a waiter that polls
	RecountRun = "recount"
	RenewRun   = "renew"
	ManyRun    = "renewmany" // renews several holds
	FreeRun    = "free"      // a release that assumes that nobody waits
	ReleaseRun = "release"   // any other release
	KeepRun    = "keep"      // the release of a hold that stays
	MoveRun    = "move"
	StateRun   = "state"
	WantedRun  = "wanted" // a holder that asks whether it is asked
	ClaimRun   = "claim"  // names the newest, or asks whether it is

	ReadRenewRun = "rw read renew"

	OnceAskRun      = "once ask"
	OnceCompleteRun = "once complete"
	OnceReleaseRun  = "once release"
	OnceForgetRun   = "once forget"
	TickRun         = "tick"
	UntickRun       = "untick"

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
	ShardsRenewRun   = "shards renew"
	ShardsLeaveRun   = "shards leave"
	ShardsBalanceRun = "shards balance"
	ShardsLookRun    = "shards look"

	PresentRun = "client present" // says who the Client is
	AbsentRun  = "client absent"
	WhoRun     = "inspect who"

	TypeRun = "type" // what is stored at a key that should hold something else
)

// sources lists the scripts of the mutex, of the read-write lock, of a Once, of barriers, of slots, of elections and of
// identities, and the one behind the error of a wrong type, with the files below the folder lua that
// make up each of them.
var sources = []struct {
	name  string
	of    string // the package
	files string
	trait conn.Trait
}{
	{LockRun, "rlock", "token lock", 0},
	{"stripes", "rlock", "stripes", 0},
	{EnterRun, "internal/lockhash", "token life queue enter", 0},
	{LookRun, "internal/lockhash", "life look", 0},
	{RecountRun, "internal/lockhash", "recount", 0},
	{RenewRun, "internal/lockhash", "renew", 0},
	{ManyRun, "internal/lockhash", "renewmany", 0},
	{FreeRun, "internal/lockhash", "free", conn.Timeless},
	{ReleaseRun, "internal/lockhash", "token life queue release", conn.Always},
	{KeepRun, "internal/lockhash", "keep", 0},
	{MoveRun, "internal/lockhash", "move", 0},
	{"notice", "internal/lockhash", "notice", conn.Always},
	{StateRun, "internal/lockhash", "state", conn.Always},
	{"ask", "internal/lockhash", "ask", 0},
	{WantedRun, "internal/lockhash", "wanted", conn.Always},
	{ClaimRun, "internal/lockhash", "claim", 0},
	{"withdraw", "internal/lockhash", "withdraw", conn.Always},

	{"rw lock", "rwlock", "holders marks lock", 0},
	{"rw release", "rwlock", "holders marks release", conn.Always},
	{"rw read lock", "rwlock", "marks rlock", 0},
	{"rw read recount", "rwlock", "holders rrecount", 0},
	{ReadRenewRun, "rwlock", "holders rrenew", 0},
	{"rw read release", "rwlock", "holders marks rrelease", conn.Always},
	{"rw look", "rwlock", "holders look", conn.Always},

	{OnceAskRun, "once", "token ask", 0},
	{OnceCompleteRun, "once", "complete", conn.Always},
	{OnceReleaseRun, "once", "release", conn.Always},
	{OnceForgetRun, "once", "forget", 0},
	{TickRun, "once", "tick", 0},
	{UntickRun, "once", "untick", conn.Always},

	{BarrierEnterRun, "barrier", "failed generation enter", 0},
	{BarrierLookRun, "barrier", "failed generation look", conn.Always},
	{BarrierBreakRun, "barrier", "failed generation break", conn.Always},
	{BarrierReleaseRun, "barrier", "failed generation release", conn.Always},
	{BarrierRenewRun, "barrier", "renew", 0},
	{BarrierStateRun, "barrier", "state", conn.Always},

	{SlotsAcquireRun, "slots", "failed token numbers turns acquire", 0},
	{SlotsRenewRun, "slots", "failed numbers renew", 0},
	{SlotsReleaseRun, "slots", "failed numbers turns release", conn.Always},
	{"slots free", "slots", "failed numbers free", conn.Always},
	{"slots look", "slots", "failed numbers look", conn.Always},
	{LimitTakeRun, "limiter", "state asked turn take write", 0},
	{LimitGiveBackRun, "limiter", "state giveback write", conn.Always},
	{LimitSetRun, "limiter", "state set turn write", 0},

	{ShardsJoinRun, "shards", "failed token table join", 0},
	{ShardsRenewRun, "shards", "failed table renew", 0},
	{ShardsLeaveRun, "shards", "failed table leave", conn.Always},
	{ShardsBalanceRun, "shards", "failed token table plan balance", 0},
	{ShardsLookRun, "shards", "failed table look", conn.Always},

	{"pause look", "internal/pause", "look", conn.Always | conn.Mixed},

	{PresentRun, "internal/engine", "present", 0},
	{AbsentRun, "internal/engine", "absent", conn.Always},
	{WhoRun, "internal/inspect", "who", conn.Always},
	{TypeRun, "internal/engine", "type", conn.Always},

	{"fair enter", "fairlock", "token life queue priority enter", 0},

	{"leader enter", "leader", "token life queue candidate enter", 0},
	{"leader release", "leader", "token life queue retire release", conn.Always},
	{"leader tell", "leader", "tell", 0},
	{"leader look", "leader", "look", conn.Always},
	{"leader ask", "leader", "ask", 0},
	{"leader candidates", "leader", "candidates", conn.Always},
}

// shared are the files of internal/lockhash that an election runs, and a waiter with a priority.
var shared = []string{"token", "life", "queue", "enter", "release"}

// load makes the server know every script, and records their names.
func (w *World) load() {
	w.T.Helper()
	w.scripts = ScriptNames(w.T)
	w.Mini.HasScripts(named.sources)
}

// ScriptNames returns the names of the scripts by what a sending carries: the digest, or the source.
func ScriptNames(t testing.TB) map[string]string {
	t.Helper()
	named.once.Do(func() { named.names, named.sources = scripts(t) })
	return named.names
}

// named has, when ScriptNames has been called, what scripts returns.
var named struct {
	once           sync.Once
	names, sources map[string]string
}

// scripts returns the names of the scripts by digest and by source, and the sources by digest.
func scripts(t testing.TB) (names, bySum map[string]string) {
	t.Helper()
	names, bySum = map[string]string{}, map[string]string{}
	for _, s := range sources {
		var text strings.Builder
		for _, file := range strings.Fields(s.files) {
			of := s.of
			switch {
			case file == "failed":
				of = "internal/engine"
			case file == "token" || (s.of == "leader" || s.of == "fairlock") && slices.Contains(shared, file):
				of = "internal/lockhash"
			}
			text.WriteString(doctest.Read(t, of+"/lua/"+file+".lua"))
		}
		source := conn.NewScript(s.name, text.String(), s.trait).Source()
		sum := sha1.Sum([]byte(source))
		digest := hex.EncodeToString(sum[:])
		names[digest], names[source], bySum[digest] = s.name, s.name, source
	}
	return names, bySum
}
