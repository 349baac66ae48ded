package limiter

import (
	_ "embed"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// The scripts of a limit. Each file opens with its contract.
var (
	//go:embed lua/state.lua
	stateSource string
	//go:embed lua/rate.lua
	rateSource string

	//go:embed lua/take.lua
	takeSource string
	//go:embed lua/giveback.lua
	giveBackSource string
	//go:embed lua/set.lua
	setSource string

	takeScript     = conn.NewScript("limiter/take", stateSource+rateSource+takeSource)
	giveBackScript = conn.NewScript("limiter/giveback", stateSource+rateSource+giveBackSource, conn.Always)
	setScript      = conn.NewScript("limiter/set", stateSource+rateSource+setSource)

	// allowScript is takeScript for calls that do not wait. Those that queue for a server go out together;
	// they hear only what a bundle answers.
	allowScript = conn.NewScript("limiter/allow", stateSource+rateSource+takeSource)

	_ = conn.NewBundle("limiter/bundle", 5, "", conn.Part{Script: allowScript, Keys: 1, Args: 7})
)
