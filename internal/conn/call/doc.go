// Package call is what is sent to a server, and what is known of its outcome.
//
//	Script   a text of Lua, with what all scripts begin with before it. Package variables: they
//	         never change
//	Bundle   a script that runs several calls of others, its parts, each with its own outcome
//	Call     one run of one script, as its caller sees it. One goroutine uses it, once
//	Small    a Call of two keys and three arguments in one piece, which is used again
//	Reply    the script's answer
//
// A Call goes down with Script, Keys and Args, and what bounds it. Package server fills in the rest:
// Reply and Sent when a request was answered, Unheard for each request whose answer nobody will
// read, Acknowledge for replicas, Attempts for each sending.
//
// Whatever happens, a script may run twice, or late: so a request has a not-after (Deadline), after
// which it changes nothing. What was sent and not heard of keeps a Call out of the pool of Smalls.
package call
