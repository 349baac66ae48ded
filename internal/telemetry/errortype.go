// The value of error.type: the class of failure that an error belongs to.

package telemetry

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// errorTypes is in the order in which a joined error is classified: the fate of the lease says
// more than the refusal or the fault that led to it.
var errorTypes = [...]struct {
	is   error
	name string
}{
	{errs.Expired, "expired"}, // before Lost, which it matches too
	{errs.Lost, "lost"},
	{errs.MaxHold, "max_hold"},
	{errs.Closed, "closed"},
	{errs.Released, "released"},
	{errs.BadArgument, "bad_argument"},
	{errs.Upgrade, "upgrade"},
	{errs.NoPermits, "no_permits"},
	{errs.Deleted, "deleted"},
	{errs.Mismatch, "mismatch"},
	{errs.TooLarge, "too_large"},
	{errs.WorkFailed, "work_failed"},
	{errs.Unknown, "unknown"},
	{errs.NotReplicated, "not_replicated"},
	{errs.NoQuorum, "no_quorum"},
	{errs.NoLeader, "no_leader"},
	{errs.Resigned, "resigned"},
	{errs.Broken, "broken"},
	{errs.Parties, "parties"},
	{errs.Paused, "paused"},
	{errs.Superseded, "superseded"},
	{errs.WrongType, "wrong_type"},
	{errs.OutOfMemory, "out_of_memory"},
	{errs.Denied, "denied"},
	{errs.Unavailable, "unavailable"},
	{errs.Busy, "busy"},
}

// otherError is OpenTelemetry's own word for an error without a class.
const otherError = "_OTHER"

// errorType returns the class of err: one of Holdfast's sentinels, else the code with which
// Redis began its reply ("LOADING"), else "timeout" or "network", else "_OTHER". There are few
// classes, so a metric can carry them.
func errorType(err error) string {
	for _, t := range errorTypes {
		if errors.Is(err, t.is) {
			return t.name
		}
	}
	if reply, ok := errors.AsType[redisError](err); ok {
		return replyCode(reply.Error())
	}
	if fault, ok := errors.AsType[net.Error](err); ok {
		if fault.Timeout() {
			return "timeout"
		}
		return "network"
	}
	// go-redis returns a closed connection as the bare io error.
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return "network"
	}
	return otherError
}

// redisError is what go-redis's error replies have in common.
type redisError interface {
	error
	RedisError()
}

// replyCode returns the first word of an error reply if it is a code. A script
// or a proxy may send any text, and that must not become the value of a metric.
func replyCode(reply string) string {
	const longest = 24 // twice the longest code that Redis has
	code, _, _ := strings.Cut(reply, " ")
	if code == "" || len(code) > longest {
		return otherError
	}
	for i := range len(code) {
		if code[i] < 'A' || code[i] > 'Z' {
			return otherError
		}
	}
	return code
}
