// Whether Redis is reached, and what it is: a refused password, a node of a cluster and a Sentinel are found out
// here, once for all commands.

package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/address"
)

// reached waits until Redis answers, for as long as --timeout. It returns an error if Redis does not answer, refuses
// the password, or cannot be used by that URL. What another refusal means, the library knows.
func (a *app) reached(ctx context.Context, rdb redis.UniversalClient, at *address.Address) error {
	within, cancel := a.within(ctx)
	defer cancel()
	var last error
	for {
		err := firstAnswer(within, rdb)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case within.Err() != nil && last != nil:
			return unreached(at, fmt.Errorf("%w: %w", context.Cause(within), last))
		case within.Err() != nil && at.TLS() != nil:
			return unreached(at, fmt.Errorf("%w (if it speaks no TLS, the URL begins with redis or valkey)", context.Cause(within)))
		case within.Err() != nil:
			return unreached(at, context.Cause(within))
		case err == nil:
			return misplaced(within, rdb, at)
		}
		if final, err := judge(err, at); final {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) { // which says less than what came before
			last = because(err, at)
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-within.Done():
			next.Stop()
		}
	}
}

// pause is between two tries to reach Redis.
const pause = 100 * time.Millisecond

// firstAnswer returns Redis's answer to a PING, or ctx's cause as soon as ctx ends: go-redis would wait for a
// server that does not answer for as long as its own timeouts allow.
func firstAnswer(ctx context.Context, rdb redis.UniversalClient) error {
	answer := make(chan error, 1)
	go func() { answer <- rdb.Ping(ctx).Err() }() // it ends when rdb is closed
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unreached returns the error of a Redis that did not answer.
func unreached(at *address.Address, why error) error {
	return &exit{codeUnavailable, fmt.Errorf("no answer from Redis at %v: %w", at, why)}
}

// judge reports whether the error of a PING is final, and returns what to return for it.
func judge(err error, at *address.Address) (final bool, _ error) {
	ofSentinels := at.Sentinel != nil && errors.As(err, new(interface{ Unwrap() []error }))
	for _, e := range each(err) {
		var reply redis.Error
		if !errors.As(e, &reply) {
			continue
		}
		if denied := denial(reply, at, ofSentinels); denied != nil {
			return true, denied
		}
		switch text := reply.Error(); {
		case ofSentinels && errors.Is(reply, redis.Nil):
			return true, usage(fmt.Errorf("the Sentinels at %v know no master of that name", at))
		case ofSentinels && strings.Contains(text, "unknown command"):
			return true, usage(fmt.Errorf("there is no Sentinel at %v: for a server without Sentinels write %s", at, at.Like("")))
		case at.Cluster != nil && strings.Contains(text, "cluster support disabled"):
			return true, usage(fmt.Errorf("the server at %v belongs to no cluster: write %s", at, at.Like("")))
		case !ofSentinels:
			return true, nil
		}
	}
	if ofTLS(err) { // it is the same the next time
		return true, unreached(at, because(err, at))
	}
	return false, nil
}

// each returns the errors of several Sentinels, or one error.
func each(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

// denial returns the error of a user or password that is refused, or nil.
func denial(reply redis.Error, at *address.Address, ofSentinels bool) error {
	whose, refuses, wants, give := "Redis", "refuses", "wants", "HOLDFAST_PASSWORD, --password-file"
	if ofSentinels {
		whose, refuses, wants, give = "the Sentinels", "refuse", "want", "HOLDFAST_SENTINEL_PASSWORD, --sentinel-password-file"
	}
	text, what := reply.Error(), ""
	switch {
	case strings.HasPrefix(text, "NOAUTH"):
		what = wants + " a password: give it by " + give + " or in the URL"
	case strings.Contains(text, "without any password configured"), strings.Contains(text, "no password is set"):
		what = refuses + " a password, as none is configured there"
		if ofSentinels {
			what += "; if it is Redis's own, give it by HOLDFAST_PASSWORD, --password-file or the option password"
		}
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "ERR invalid password"):
		what = refuses + " the user or the password"
	case strings.HasPrefix(text, "NOPERM") && ofSentinels:
		what = refuses + " this user"
	default:
		return nil
	}
	return &exit{codeDenied, fmt.Errorf("%s at %v %s", whose, at, what)}
}

// ofTLS reports whether one side does not trust the other, or speaks no TLS.
func ofTLS(err error) bool {
	var op *net.OpError
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) ||
		errors.As(err, &op) && op.Op == "remote error"
}

// because returns why Redis was not reached, on one line, and what may mend it.
func because(err error, at *address.Address) error {
	var texts []string
	for _, e := range each(err) {
		var op *net.OpError
		text := e.Error()
		if errors.As(e, &op) {
			text = op.Error() // without what go-redis says of its tries
		}
		text, _, _ = strings.Cut(text, ", with args beginning with") // an old server repeats AUTH
		texts = append(texts, strings.ReplaceAll(text, "\n", " "))
	}
	slices.Sort(texts)
	why := strings.Join(slices.Compact(texts), "; ")
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		why += " (--ca names the file of a private authority)"
	case errors.As(err, new(x509.HostnameError)):
		why += " (--server-name sets the name to expect)"
	case strings.Contains(why, "certificate required"):
		why += " (--cert and --key name the files of a certificate to show)"
	case errors.As(err, new(tls.RecordHeaderError)):
		why += " (it seems to speak no TLS)"
	case at.TLS() == nil && (errors.Is(err, io.EOF) || strings.Contains(why, "connection reset")):
		why += " (if it speaks TLS, the URL begins with rediss)"
	}
	return errors.New(why)
}

// misplaced returns an error if the server of a URL of one server is a node of a cluster, which has a part of the names
// only, or a Sentinel. A user that may not ask is not refused for that.
func misplaced(ctx context.Context, rdb redis.UniversalClient, at *address.Address) error {
	if at.Server == nil {
		return nil
	}
	info, err := rdb.Info(ctx).Result()
	if err == nil && strings.Contains(info, "_mode:sentinel") {
		master := "MASTER"
		if found := masterOfInfo.FindStringSubmatch(info); found != nil {
			master = found[1]
		}
		return usage(fmt.Errorf("at %v is a Sentinel: write %s/%s", at, at.Like("+sentinel"), master))
	}
	if err == nil && !strings.Contains(info, "cluster_enabled:1") || !isNode(ctx, rdb) {
		return nil
	}
	return ofNode(at)
}

var masterOfInfo = regexp.MustCompile(`(?m)^master0:name=([^,\s]+),`)

// isNode reports whether a server leaves names to other servers. A cluster of one server does not, nor a proxy that
// knows the way to them.
func isNode(ctx context.Context, rdb redis.UniversalClient) bool {
	info, err := rdb.ClusterInfo(ctx).Result()
	if err != nil || strings.Contains(info, "cluster_size:0") || strings.Contains(info, "cluster_size:1\r") {
		return false
	}
	_, err = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range 32 {
			p.Exists(ctx, fmt.Sprintf("holdfast:probe:%d", n))
		}
		return nil
	})
	return err != nil // of the first that failed
}

// ofNode returns the error of a node of a cluster.
func ofNode(at *address.Address) error {
	return usage(fmt.Errorf("at %v is one node of a cluster, which has a part of the names only: write %s", at, at.Like("+cluster")))
}

// plain returns an error in the words of the command, where the library has those of a program: if the user may not
// ask whether the server is a node of a cluster, the first refusal says so.
func (a *app) plain(err error) error {
	var reply redis.Error
	moved := errors.Is(err, holdfast.ErrBadArgument) && errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "MOVED ")
	if a.at != nil && moved {
		return ofNode(a.at)
	}
	return err
}
