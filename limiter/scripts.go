package limiter

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

// The scripts of a limit. Each file opens with its contract.
var (
	takeScript     = conn.NewScript("limiter/take", lua("state", "asked", "turn", "take", "write"))
	giveBackScript = conn.NewScript("limiter/giveback", lua("state", "giveback", "write"), conn.Always)
	setScript      = conn.NewScript("limiter/set", lua("state", "set", "turn", "write"))

	// allowScript is takeScript for calls that do not wait. Those that queue for a server go out together;
	// they hear only what a bundle answers.
	allowScript = conn.NewScript("limiter/allow", lua("state", "asked", "turn", "take", "write"))

	_ = conn.NewBundle("limiter/bundle", 5, "", conn.Part{Script: allowScript, Keys: 1, Args: 7})
)
