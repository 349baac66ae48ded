// Package fault says what each error of a server, or of the network, requires of those who send.
//
// An error comes in one of three forms: a server's reply (IsReply), a failure of the connection, or
// one of the marks that say how far a request came: Unsent, Unreached, NotAlone, ErrSpent,
// ErrRetired, ErrGarbled. Package server makes these marks, package conn reads them.
//
//	Judge       what to do about a call: a Verdict
//	RemedyOf    what ends a server's refusal: time, an operator, or nothing
//	MayHaveRun  whether the request may have taken effect
//	Typed       the error for the caller, with its sentinel of package errs
//	Explained   the server's words, without what only helps in its own log
//
// Everything here is a function of the error alone. No state, no goroutine.
package fault
