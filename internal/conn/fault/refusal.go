// A server's error: how each version words it, and what can end it.

package fault

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The same error has other words around it where a script met it. Redis 7 and Valkey put the place
// in the script behind it:
//
//	OOM command not allowed ... script: 58fb04a, on @user_script:15.
//	ERR Can not execute ... while the cluster is down and readonly script: on @user_script:27.
//
// Redis 6 puts it before: once if the script returned the error, and again if the script raised it.
//
//	@user_script: 154: -READONLY You can't write against a read only replica.
//	ERR Error running script (call to f_58fb04a): @user_script:15: @user_script: 15: -OOM command ...
var (
	placeBehind = regexp.MustCompile(` script: (?:[0-9a-f]+, )?on @user_script:(\d+)\.$`)
	raised      = regexp.MustCompile(`^ERR Error running script \(call to f_[0-9a-f]+\): `)
	placeBefore = regexp.MustCompile(`^@user_script: ?(\d+): -?`)
)

// said returns what a server's error says without the place in the script, and the line of that
// place; "" if it has none.
func said(err error) (text, line string) {
	text = words(err)
	if at := placeBehind.FindStringSubmatch(text); at != nil {
		return strings.TrimSuffix(text, at[0]), at[1]
	}
	text = strings.TrimPrefix(text, raised.FindString(text))
	for {
		at := placeBefore.FindStringSubmatch(text)
		if at == nil {
			return text, line
		}
		text, line = strings.TrimPrefix(text, at[0]), at[1]
	}
}

// words returns the server's error inside err as the server has written it.
func words(err error) string {
	var reply redis.Error
	if errors.As(err, &reply) {
		err = reply
	}
	return err.Error()
}

// IsReply reports whether err is a server's answer. Then the connection is whole, and the
// request did not take effect.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// HasCode reports whether a server's error has that code. Some servers that stand in for Redis,
// such as miniredis, put other words before it.
func HasCode(err error, code string) bool {
	if !IsReply(err) {
		return false
	}
	text, _ := said(err)
	return strings.HasPrefix(text, code) || strings.HasPrefix(text, "ERR Error ") && strings.Contains(text, " "+code)
}

// Remedy is what ends a server's refusal.
type Remedy int

// Each remedy, and the refusals that it ends.
const (
	nothing  Remedy = iota // the call itself is wrong
	Passage                // a failover, a slot on the move, a load
	Operator               // rights, a password, memory, a disk
)

// TooManyClients begins what a server says at its limit of connections. In a cluster it goes on with other words than
// on one server.
const TooManyClients = "ERR max number of clients"

// passing are the codes of refusals that time ends, and passingWords what errors without a code of
// their own say, in lower case: keys of one slot on two servers, since the slot has moved while the
// script ran; and a cluster that is down, but lets scripts begin (cluster-allow-reads-when-down).
var (
	passing = []string{
		"LOADING ", "READONLY ", "TRYAGAIN ", "CLUSTERDOWN ", "MASTERDOWN ", "NOREPLICAS ", "BUSY ",
		TooManyClients, "UNBLOCKED ",
	}
	passingWords = []string{"attempted to access a non local key", "while the cluster is down"}
)

// mended are the codes of refusals that an operator ends.
var mended = slices.Concat(denials, []string{"OOM ", "MISCONF "})

// denials are the codes of refusals for want of a right, or of the right password.
var denials = []string{"NOPERM ", "NOAUTH ", "WRONGPASS ", "DENIED ", "ERR AUTH ", "ERR invalid password"}

// RemedyOf returns what ends a server's refusal.
func RemedyOf(err error) Remedy {
	if !IsReply(err) {
		return nothing
	}
	has := func(code string) bool { return HasCode(err, code) }
	text := strings.ToLower(words(err))
	says := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case slices.ContainsFunc(passing, has), slices.ContainsFunc(passingWords, says):
		return Passage
	case slices.ContainsFunc(mended, has), deniedInside(err):
		return Operator
	}
	return nothing
}

// RefusesEval reports whether the server runs no script that is sent whole: the user lacks the right, or
// the command was renamed.
func RefusesEval(err error) bool {
	if err == nil || !IsReply(err) {
		return false
	}
	text := strings.ToLower(words(err))
	return HasCode(err, "NOPERM ") && strings.Contains(text, "'eval'") ||
		strings.Contains(text, "unknown command 'eval'") || strings.Contains(text, "unknown command `eval`")
}

// deniedInside reports whether Redis refused a command inside a script because the user lacks a
// right. That error has no code; these are the words of Redis 6 and 7.0, and of 7.2 and later.
func deniedInside(err error) bool {
	text := words(err)
	return IsReply(err) && (strings.Contains(text, "The user executing the script can't ") ||
		strings.Contains(text, "ACL failure in script: "))
}

// IsNoMaster reports whether the server answered that it is not the master. A server that is
// loading its data may be the master: once it is ready, it answers on the same connection.
func IsNoMaster(err error) bool {
	return HasCode(err, "READONLY ") || HasCode(err, "MASTERDOWN ")
}

// LacksCommand reports whether a server has answered that it does not have a command.
func LacksCommand(err error) bool { return err != nil && IsReply(err) && IsUnknownCommand(err) }

// IsUnknownCommand reports whether the server is too old for the command, or its operator has
// renamed it.
func IsUnknownCommand(err error) bool {
	text := strings.ToLower(words(err))
	return slices.ContainsFunc([]string{
		"unknown command", "unknown subcommand", "unknown pubsub subcommand", "unknown redis command",
	}, func(words string) bool { return strings.Contains(text, words) })
}
