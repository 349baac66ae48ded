// A server's error: what it says in the form in which each version writes it, and what can end it.

package conn

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

// isReply reports whether err is a server's answer. Then the connection is whole, and the
// request did not take effect.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// hasCode reports whether a server's error has that code. Some servers that stand in for Redis, as
// miniredis, put other words before it.
func hasCode(err error, code string) bool {
	if !isReply(err) {
		return false
	}
	text, _ := said(err)
	return strings.HasPrefix(text, code) || strings.HasPrefix(text, "ERR Error ") && strings.Contains(text, " "+code)
}

// remedy is what ends a server's refusal.
type remedy int

const (
	nothing  remedy = iota // the call itself is wrong
	passage                // a failover, a slot on the move, a load
	operator               // rights, a password, memory, a disk
)

// passing are the codes of refusals that time ends, and passingWords what errors without a code of
// their own say, in lower case: keys of one slot on two servers, since the slot has moved while the
// script ran; and a cluster that is down, but lets scripts begin (cluster-allow-reads-when-down).
var (
	passing = []string{
		"LOADING ", "READONLY ", "TRYAGAIN ", "CLUSTERDOWN ", "MASTERDOWN ", "NOREPLICAS ", "BUSY ",
		full, "UNBLOCKED ",
	}
	passingWords = []string{"attempted to access a non local key", "while the cluster is down"}
)

// mended are the codes of refusals that an operator ends.
var mended = slices.Concat(denials, []string{"OOM ", "MISCONF "})

// denials are the codes of refusals for want of a right, or of the right password.
var denials = []string{"NOPERM ", "NOAUTH ", "WRONGPASS ", "DENIED ", "ERR AUTH ", "ERR invalid password"}

// remedyOf returns what ends a server's refusal.
func remedyOf(err error) remedy {
	if !isReply(err) {
		return nothing
	}
	has := func(code string) bool { return hasCode(err, code) }
	text := strings.ToLower(words(err))
	says := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case slices.ContainsFunc(passing, has), slices.ContainsFunc(passingWords, says):
		return passage
	case slices.ContainsFunc(mended, has), deniedInside(err):
		return operator
	}
	return nothing
}

// refusesEval reports whether the server runs no script that is sent whole: the user lacks the right, or
// the command was renamed.
func refusesEval(err error) bool {
	if err == nil || !isReply(err) {
		return false
	}
	text := strings.ToLower(words(err))
	return hasCode(err, "NOPERM ") && strings.Contains(text, "'eval'") ||
		strings.Contains(text, "unknown command 'eval'") || strings.Contains(text, "unknown command `eval`")
}

// deniedInside reports whether Redis refused a command inside a script because the user lacks a
// right. That error has no code; these are the words of Redis 6 and 7.0, and of 7.2 and later.
func deniedInside(err error) bool {
	text := words(err)
	return isReply(err) && (strings.Contains(text, "The user executing the script can't ") ||
		strings.Contains(text, "ACL failure in script: "))
}

// isNoMaster reports whether the server answered that it is not the master. A server that is
// loading its data may be the master: once it is ready, it answers on the same connection.
func isNoMaster(err error) bool {
	return hasCode(err, "READONLY ") || hasCode(err, "MASTERDOWN ")
}

// LacksCommand reports whether a server has answered that it does not have a command.
func LacksCommand(err error) bool { return err != nil && isReply(err) && isUnknownCommand(err) }

// isUnknownCommand reports whether the server is too old for the command, or its operator has
// renamed it.
func isUnknownCommand(err error) bool {
	text := strings.ToLower(words(err))
	return slices.ContainsFunc([]string{
		"unknown command", "unknown subcommand", "unknown pubsub subcommand", "unknown redis command",
	}, func(words string) bool { return strings.Contains(text, words) })
}
