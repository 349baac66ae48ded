package semaphore

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of both semaphores. Each file opens with its contract.
var (
	beginScript  = once("begin", lua("all", "begin"))
	giveScript   = once("give", lua("all", "give"))
	takeScript   = once("take", lua("all", "take"))
	cancelScript = once("cancel", lua("all", "cancel"))
	addScript    = once("add", lua("add"))
	setScript    = once("set", lua("set"))
	drainScript  = once("drain", lua("drain"))
	freeScript   = conn.NewScript("semaphore/free", lua("free"), conn.Always)

	// Each takes a server 15 to 19 µs.
	_ = conn.NewBundle("semaphore/bundle", 5, "",
		conn.Part{Script: takeScript, Keys: 3, Args: 4, Common: []int{4}},
		conn.Part{Script: giveScript, Keys: 3, Args: 7, Common: []int{4, 6, 8}})
)

// The scripts of leased permits.
var (
	leaseScript   = conn.NewScript("permits/lease", engine.UndoingSource(lua("lease")))
	renewScript   = conn.NewScript("permits/renew", lua("renew"))
	releaseScript = conn.NewScript("permits/release", engine.UndoingSource(lua("release")), conn.Always)
	updateScript  = conn.NewScript("permits/update", lua("update"))
	lookScript    = conn.NewScript("permits/look", lua("look"), conn.Always)
	stateScript   = conn.NewScript("permits/state", lua("state"), conn.Always)
)

func once(name, body string) *conn.Script {
	return conn.NewScript("semaphore/"+name, engine.OnceSource(body))
}
