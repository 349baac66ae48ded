// What each error of a server or of the network requires the caller to do.

package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// unsent marks an error that occurred before anything was sent.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// errGarbled is the error of a reply that no script gives: it was for another request, or did
// not come from Redis. The connection is given up, as after half a reply, and nothing is known
// of what the request did.
var errGarbled = errors.New("the reply makes no sense")

// unreached marks the failure to make a connection. A caller that gets it may send again at
// once: the gate makes it wait.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// verdict is what an error makes the runner do.
type verdict int

const (
	final      verdict = iota // return it to the caller
	again                     // the server or the network may recover: retry with backoff
	anew                      // the connection was gone, or it went with others: retry at once
	unknown                   // NOSCRIPT: the server does not have the script
	moved                     // MOVED: another server has the slot
	redirected                // ASK: another server has the key, this once
)

// judge decides what an error means for the call.
func judge(err error) verdict {
	switch {
	case errors.Is(err, errs.Closed), hopeless(err):
		return final
	case errors.Is(err, errSpent), errors.Is(err, errRetired), errors.As(err, new(notAlone)):
		return anew
	case !isReply(err):
		return again
	case hasCode(err, "NOSCRIPT "):
		return unknown
	case hasCode(err, "MOVED "):
		return moved
	case hasCode(err, "ASK "):
		return redirected
	case remedyOf(err) == passage:
		return again
	}
	return final
}

// hopeless reports whether the connection could not be made for a reason that only the operator
// can mend: one side refuses the other's certificate, the server does not speak TLS, the
// program has closed what the dialer needs, or ClusterSlots names several masters.
func hopeless(err error) bool {
	if !errors.As(err, new(unreached)) {
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

// mendable reports whether a clean-up goes on after an error that is final for other calls: what is
// to be undone is still there when the operator has mended what Redis refuses. Before a request is
// sent that may be credentials or a certificate.
func mendable(err error) bool {
	if errors.Is(err, errs.Closed) || errors.Is(err, redis.ErrClosed) || errors.Is(err, errs.BadArgument) {
		return false
	}
	return errors.As(err, new(unreached)) || errors.As(err, new(unsent)) || remedyOf(err) == operator
}

// Mendable reports whether an operator can mend what the error of a Run says: rights, a password, a
// certificate, memory, a disk.
func Mendable(err error) bool {
	return mendable(err) || hopeless(err) && !errors.Is(err, redis.ErrClosed) && !errors.Is(err, errs.BadArgument)
}

// refusesCertificate reports whether the server refused the client's certificate.
func refusesCertificate(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// typed adds the matching sentinel to a server's error. s is the script that was refused; nil
// if there is none.
func typed(err error, s *Script) error {
	err = explained(err, s)
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
			if hasCode(err, code) {
				return fmt.Errorf("%w: %w", t.sentinel, err)
			}
		}
	}
	if deniedInside(err) {
		return fmt.Errorf("%w: %w", errs.Denied, err)
	}
	return err
}

// mayHaveRun reports whether a request that failed with err may have been executed, or may
// still be.
func mayHaveRun(err error) bool {
	if errors.As(err, new(unsent)) || isReply(err) {
		return false
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

// isTimeout reports whether the server was silent for too long.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// redirection returns the address in a MOVED or ASK error ("MOVED 3999 host:port") from the
// server at from. If the host is empty, it is the host of from. Redis writes an IPv6 address
// without brackets.
func redirection(err error, from string) string {
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

// Typed adds the matching sentinel to an error of a client made by Dial, as Run does. Nobody tries again after it, so
// what is no answer of a server matches errs.Unavailable.
func Typed(err error) error {
	err = typed(err, nil)
	for _, known := range []error{errs.Unavailable, context.Canceled, context.DeadlineExceeded} {
		if isReply(err) || errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errs.Unavailable, err)
}
