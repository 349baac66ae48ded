// A fault is what can happen to one command on its way through a FaultProxy.

package redistest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Fault is a rule's answer for one command: one of the constants, or the result of Delay,
// DelayReply, HoldUntil, HoldReply, ReplyError, ReplyNumber or Reply.
type Fault interface{ plan() plan }

// plan is a fault with its parameters.
type plan struct {
	outcome outcome
	delay   time.Duration
	request <-chan struct{} // hold the request until it is closed
	reply   <-chan struct{} // hold the reply until it is closed
	message string
}

type outcome int

const (
	// Pass forwards the command and its reply untouched.
	Pass outcome = iota

	// CloseAfterExec forwards the command, waits until the server has answered,
	// swallows that reply and closes the connection. Commands behind it on the
	// connection are not forwarded.
	CloseAfterExec

	// Silence forwards the command and delivers neither its reply nor anything
	// after it on this connection, which stays open. Later commands still reach
	// the server.
	Silence

	// DropBefore closes the connection instead of forwarding the command, once
	// the replies to the commands before it are delivered.
	DropBefore

	// HalfReply delivers the first half of the reply's bytes and closes the
	// connection. Commands behind it are not forwarded.
	HalfReply

	// Duplicate forwards the command twice and delivers the second reply, as for a client that
	// sent the command again.
	Duplicate

	answer // ReplyError, ReplyNumber, Reply
)

func (o outcome) plan() plan { return plan{outcome: o} }

// ends reports whether commands behind this one are not forwarded.
func (o outcome) ends() bool { return o == CloseAfterExec || o == HalfReply || o == DropBefore }

func (p plan) plan() plan { return p }

// Delay holds the request, and everything after it on its connection, for d before it is
// forwarded. It is forwarded even if the client is gone by then, as a request that is late in
// the network.
func Delay(d time.Duration) Fault { return plan{delay: d} }

// HoldUntil is Delay until ch is closed.
func HoldUntil(ch <-chan struct{}) Fault { return plan{request: ch} }

// HoldReply forwards the command at once. It holds the reply, and everything after it on its
// connection, until ch is closed.
func HoldReply(ch <-chan struct{}) Fault { return plan{reply: ch} }

// DelayReply forwards the command at once. It holds the reply, and everything after it on its
// connection, for d.
func DelayReply(d time.Duration) Fault { return delayedReply(d) }

type delayedReply time.Duration

func (d delayedReply) plan() plan {
	held := make(chan struct{})
	time.AfterFunc(time.Duration(d), func() { close(held) })
	return plan{reply: held}
}

// ReplyError does not forward the command, and answers it with the error message, such as
// "LOADING Redis is loading the dataset in memory".
func ReplyError(message string) Fault { return plan{outcome: answer, message: "-" + message} }

// ReplyNumber does not forward the command, and answers it with the number.
func ReplyNumber(n int64) Fault { return plan{outcome: answer, message: fmt.Sprintf(":%d", n)} }

// Reply does not forward the command, and answers it with these bytes and an end of line.
func Reply(bytes string) Fault { return plan{outcome: answer, message: bytes} }

// Command is one command that a client sent through the proxy.
type Command struct {
	Conn int64    // running number of the connection, from 1
	N    int64    // running number of the command over all connections, from 1
	Name string   // upper case
	Args []string // without the name
}

// Nth returns a rule that gives the n-th command called name, counted from 1
// over all connections, the fault f and lets everything else pass.
func Nth(name string, n int64, f Fault) func(Command) Fault {
	var seen atomic.Int64
	return func(c Command) Fault {
		if strings.EqualFold(c.Name, name) && seen.Add(1) == n {
			return f
		}
		return Pass
	}
}
