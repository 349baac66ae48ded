// What each error of a server or of the network requires the caller to do.

package fault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Unsent marks an error that occurred before anything was sent.
type Unsent struct{ Err error }

func (u Unsent) Error() string { return u.Err.Error() }
func (u Unsent) Unwrap() error { return u.Err }

// ErrGarbled is the error of a reply that no script gives: it was for another request, or did
// not come from Redis. The connection is given up, like one with half a reply, and nothing is known
// of what the request did.
var ErrGarbled = errors.New("the reply makes no sense")

// Unreached marks the failure to make a connection. A caller that gets it may send again at
// once: the gate makes it wait.
type Unreached struct{ Err error }

func (u Unreached) Error() string { return u.Err.Error() }
func (u Unreached) Unwrap() error { return u.Err }

// NotAlone marks the error of a bundle. Sent alone, a request may succeed, or its error says what is
// wrong with it.
type NotAlone struct{ Err error }

func (n NotAlone) Error() string { return n.Err.Error() }
func (n NotAlone) Unwrap() error { return n.Err }

// ErrSpent says that the connection of a wire was closed while it was idle. go-redis would dial
// again on the same client; but the next connection may lead to another server, with another
// clock, so it must be another wire.
var ErrSpent = errors.New("the connection was closed")

// ErrRetired is the error of a node whose server no longer has any slots.
var ErrRetired = errors.New("the server has left the cluster")

// Verdict is what an error makes the runner do.
type Verdict int

// Each verdict, and what the runner does about the error.
const (
	Final      Verdict = iota // return it to the caller
	Again                     // the server or the network may recover: retry with backoff
	Anew                      // the connection was gone, or it went with others: retry at once
	Unknown                   // NOSCRIPT: the server does not have the script
	Moved                     // MOVED: another server has the slot
	Redirected                // ASK: another server has the key, this once
)

// Judge decides what an error means for the call.
func Judge(err error) Verdict {
	switch {
	case errors.Is(err, errs.Closed), hopeless(err):
		return Final
	case errors.Is(err, ErrSpent), errors.Is(err, ErrRetired), errors.As(err, new(NotAlone)):
		return Anew
	case !IsReply(err):
		return Again
	case HasCode(err, "NOSCRIPT "):
		return Unknown
	case HasCode(err, "MOVED "):
		return Moved
	case HasCode(err, "ASK "):
		return Redirected
	case RemedyOf(err) == Passage:
		return Again
	}
	return Final
}

// hopeless reports whether the connection could not be made for a reason that only the operator
// can mend: one side refuses the other's certificate, the server does not speak TLS, the
// program has closed what the dialer needs, or ClusterSlots names several masters.
func hopeless(err error) bool {
	if !errors.As(err, new(Unreached)) {
		return false
	}
	return errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) ||
		errors.As(err, new(x509.CertificateInvalidError)) ||
		errors.As(err, new(tls.RecordHeaderError)) ||
		errors.Is(err, redis.ErrClosed) ||
		refusesCertificate(err) ||
		errors.Is(err, errs.BadArgument) // from ClusterSlots that name several masters
}

// CleanUpOutlasts reports whether a clean-up goes on after an error that is final for other calls: once
// the operator has mended the cause, there is still something to undo. If no request was sent yet, the
// cause may be credentials or a certificate.
func CleanUpOutlasts(err error) bool {
	if errors.Is(err, errs.Closed) || errors.Is(err, redis.ErrClosed) || errors.Is(err, errs.BadArgument) {
		return false
	}
	return errors.As(err, new(Unreached)) || errors.As(err, new(Unsent)) || RemedyOf(err) == Operator
}

// Mendable reports whether an operator can mend the cause of a Run's error: rights, a password, a
// certificate, memory, a disk.
func Mendable(err error) bool {
	return CleanUpOutlasts(err) || hopeless(err) && !errors.Is(err, redis.ErrClosed) && !errors.Is(err, errs.BadArgument)
}

// refusesCertificate reports whether the server refused the client's certificate.
func refusesCertificate(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// Typed adds the matching sentinel to a server's error. script is the text of the script that was
// refused; "" if there is none.
func Typed(err error, script string) error {
	err = Explained(err, script)
	if hopeless(err) {
		return fmt.Errorf("%w: %w", errs.Unavailable, err)
	}
	for _, t := range []struct {
		sentinel error
		codes    []string
	}{
		{errs.WrongType, []string{"WRONGTYPE "}},
		{errs.NoPermits, []string{"NOPERMITS "}}, // an error of Holdfast's own scripts
		{errs.OutOfMemory, []string{"OOM "}},
		{errs.Denied, denials},
	} {
		for _, code := range t.codes {
			if HasCode(err, code) {
				return fmt.Errorf("%w: %w", t.sentinel, err)
			}
		}
	}
	if deniedInside(err) {
		return fmt.Errorf("%w: %w", errs.Denied, err)
	}
	return err
}

// MayHaveRun reports whether a request that failed with err may have been executed, or may
// still be.
func MayHaveRun(err error) bool {
	if errors.As(err, new(Unsent)) || IsReply(err) {
		return false
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

// IsTimeout reports whether the server was silent for too long.
func IsTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Redirection returns the address in a MOVED or ASK error ("MOVED 3999 host:port") from the
// server at from. If the host is empty, it is the host of from. Redis writes an IPv6 address
// without brackets.
func Redirection(err error, from string) string {
	text := err.Error()
	addr := text[strings.LastIndexByte(text, ' ')+1:]
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return addr
	}
	host, port := strings.Trim(addr[:colon], "[]"), addr[colon+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, port)
}
