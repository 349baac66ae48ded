package latch

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of the latch. Each file opens with its contract.
var (
	setScript       = once("set", lua("set"))
	countDownScript = once("countdown", lua("countdown"))
	deleteScript    = once("delete", lua("delete"))
	lookScript      = conn.NewScript("latch/look", engine.NumberSource(lua("generations", "look")))
	countScript     = conn.NewScript("latch/count", engine.NumberSource(lua("count")))
)

func once(name, body string) *conn.Script {
	return conn.NewScript("latch/"+name, engine.OnceSource(lua("generations")+body))
}
