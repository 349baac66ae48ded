// What each error of a server or of the network requires the caller to do.

package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
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

// transient are the prefixes of server errors that pass by themselves.
var transient = []string{
	"LOADING ", "READONLY ", "TRYAGAIN ", "CLUSTERDOWN ", "MASTERDOWN ", "NOREPLICAS ", "BUSY ",
	full, "UNBLOCKED ",
}

// nonLocal is in the error of a script that met a key of another server. All keys of a call are in
// one slot.
const nonLocal = "attempted to access a non local key"

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
	case strings.Contains(err.Error(), nonLocal):
		return again // the slot has moved while the script ran, or the server's own view of it lags
	}
	if passes(err) {
		return again
	}
	return final
}

// passes reports whether err is a server's error that passes by itself.
func passes(err error) bool {
	return slices.ContainsFunc(transient, func(code string) bool { return hasCode(err, code) })
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

// mendable reports whether a clean-up goes on after an error that is final for other calls: the
// error came before anything was sent, because credentials or a certificate were refused. What
// is to be undone is still there when the operator has mended that.
func mendable(err error) bool {
	before := errors.As(err, new(unreached)) || errors.As(err, new(unsent))
	return before && !errors.Is(err, errs.Closed) && !errors.Is(err, redis.ErrClosed) && !errors.Is(err, errs.BadArgument)
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
		{errs.Denied, []string{"NOPERM ", "NOAUTH ", "WRONGPASS ", "ERR AUTH ", "ERR invalid password"}},
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

// deniedInside reports whether Redis refused a command inside a script because the user lacks a
// right. That error has no code; these are the words of Redis 6 and 7.0, and of 7.2 and later.
func deniedInside(err error) bool {
	text := err.Error()
	return isReply(err) && (strings.Contains(text, "The user executing the script can't ") ||
		strings.Contains(text, "ACL failure in script: "))
}

// hasCode reports whether a server's error has that code. Redis 7 puts the code of an error
// inside a script first; Redis 6 and miniredis wrap it.
func hasCode(err error, code string) bool {
	if !isReply(err) {
		return false
	}
	text := err.Error()
	return strings.HasPrefix(text, code) ||
		strings.HasPrefix(text, "ERR Error ") && strings.Contains(text, " "+code) ||
		strings.HasPrefix(text, "ERR Error ") && strings.Contains(text, "-"+code)
}

// isNoMaster reports whether the server answered that it is not the master. A server that is
// loading its data may be the master: once it is ready, it answers on the same connection.
func isNoMaster(err error) bool {
	return hasCode(err, "READONLY ") || hasCode(err, "MASTERDOWN ")
}

// isReply reports whether err is a server's answer. Then the connection is whole, and the
// request did not take effect.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
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

// isUnknownCommand reports whether the server is too old for the command.
func isUnknownCommand(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "unknown command") || strings.Contains(text, "unknown subcommand") ||
		strings.Contains(text, "unknown pubsub subcommand")
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

// Typed adds the matching sentinel to an error of a client made by Dial, as Run does.
func Typed(err error) error { return typed(err, nil) }
