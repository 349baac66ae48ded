package latch

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// The scripts of the latch. Each file opens with its contract.
var (
	//go:embed lua/generations.lua
	generationsSource string

	//go:embed lua/set.lua
	setSource string
	//go:embed lua/countdown.lua
	countDownSource string
	//go:embed lua/delete.lua
	deleteSource string
	//go:embed lua/look.lua
	lookSource string
	//go:embed lua/count.lua
	countSource string

	setScript       = once("set", setSource)
	countDownScript = once("countdown", countDownSource)
	deleteScript    = once("delete", deleteSource)
	lookScript      = conn.NewScript("latch/look", engine.NumberSource(generationsSource+lookSource))
	countScript     = conn.NewScript("latch/count", engine.NumberSource(countSource))
)

// once returns a script whose calls count once.
func once(name, body string) *conn.Script {
	return conn.NewScript("latch/"+name, engine.OnceSource(generationsSource+body))
}
