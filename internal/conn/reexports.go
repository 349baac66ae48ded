// What the library sends and hears through a Manager, under this package's name.

package conn

import (
	"embed"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/route"
	"github.com/holdfast-go/holdfast/internal/conn/server"
)

// See the package call.
type (
	Script = call.Script
	Trait  = call.Trait
	Part   = call.Part
	Call   = call.Call
	Reply  = call.Reply
	Small  = call.Small
	Smalls = call.Smalls
)

// See the package server.
type (
	Events = server.Events
	Doubt  = server.Doubt
)

// BundleWidth is how many numbers a script in a bundle answers with, at most: see [call.Usual].
const BundleWidth = call.BundleWidth

// See the package call.
const (
	Window    = call.Window
	MaxWindow = call.MaxWindow

	Timeless = call.Timeless
	Always   = call.Always
	Mixed    = call.Mixed

	Late    = call.Late
	Refused = call.Refused
	Done    = call.Done
	Awaited = call.Awaited
)

// Texts returns the function that returns texts of a folder lua: see [call.Texts].
func Texts(folder embed.FS) func(names ...string) string { return call.Texts(folder) }

// NewScript returns the script with that name, source and traits: see [call.NewScript].
func NewScript(name, source string, traits ...Trait) *Script {
	return call.NewScript(name, source, traits...)
}

// NewBundle lets calls of the parts go out together: see [call.NewBundle].
func NewBundle(name string, most int, shared string, parts ...Part) *Script {
	return call.NewBundle(name, most, shared, parts...)
}

// ServerOf returns the address by which rdb's server is known in telemetry: see [route.ServerOf].
func ServerOf(rdb redis.UniversalClient) string { return route.ServerOf(rdb) }
