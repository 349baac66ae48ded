// A sending: what is sent to a server for a call, and what becomes of it.

package server

import "github.com/holdfast-go/holdfast/internal/conn/call"

// Sending is one sending of a call.
type Sending struct {
	Call *call.Call
	Manner
	Slot      int         // of the keys, in a cluster, if the call's script may go out in a bundle
	Elsewhere func() bool // reports whether another server has the key by now; nil if none can have
}

// Manner is how a request is sent.
type Manner struct {
	Full   bool // send the source, not its hash: the server does not have the script
	Fewer  bool // send only the first Call.Enough keys
	Asking bool // send ASKING first: the slot is moving to this server
	Quiet  bool // send the script's quiet form
}

// Outcome is what has become of a sending.
type Outcome struct {
	// Left says that ctx has ended, or that the call belongs to another server by now, before there
	// was an answer.
	Left     bool
	Err      error     // nil if the script has answered
	Messages []Message // that the script's quiet form has noted, for Tell
}
