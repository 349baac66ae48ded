// Package quorum has one lock on several independent servers. The lock is held while a majority of the
// servers grant it. It is Redlock with two additions: it has a token that grows, and servers that have
// lost their data do not count.
//
// Programs make a Quorum with holdfast.NewQuorum and holdfast.NewQuorumOf. docs/quorum.md says what a
// Quorum promises, and on what conditions. To hold several locks as one, see package multilock.
//
// # How a lease comes about
//
//	Quorum.acquire
//	├─ ctx carries a lease on it ── majorityHold.enter: one lease more on the hold; no server is asked
//	└─ else ─────────────────────── rounds, until one is a grant, or ctx ends, or asking again is of
//	                                no use. Between two of them the caller pauses, and names its
//	                                turn to the servers
//	a round ─────────────────────── ask: each server for its lock, and then for its marker
//	                                beginOrMarkLost: deals with servers without a marker
//	                                grant: writes the greatest token to a majority
//	                                giveBack: of a round that is no grant
//
// On each server the lock is a lease.Locker of that server's Client, usually a Mutex. That Locker is
// requested, renewed and released in the way of a single lock.
//
// # The marker of a server
//
// The key holdfast_quorum, the marker, shows that a server has kept its data. mark.lua writes it. A
// marker has an origin, a time by the server's clock, and the set of servers for which it was written.
// The origin is the event since which the server is known to have kept its data:
//
//	noMarker      ""       there is no marker
//	foundEmpty    "empty"  the server had no marker when a round asked it. It is new, or has lost
//	                       its data; the next round that all servers answer finds out
//	quorumBegan   "new"    all servers of a set were without a marker, and a quorum began on them
//	dataLost      "lost"   others of the set had markers: the server has lost its data
//
//	noMarker ──ask──► foundEmpty ──begin────────────► quorumBegan
//	                      │                                │ of another set, with a time
//	                      └──beginOrMarkLost──► dataLost ◄─┘ that is still to come
//	any of them ──the server loses its data──► noMarker
//
// A server counts, for one set (trusts):
//
//	noMarker, foundEmpty    never
//	quorumBegan of the set  at once
//	quorumBegan of another  once the longest lease is over since the marker's time: whatever the
//	set; dataLost           server has forgotten has ended by then
//
// # The hold
//
//	lives     from the grant by a majority on. Each server's lease is renewed by its own Client, and
//	          ends by its own deadline. A server that was lost is not asked again
//	is over   by the release of its last lease; or because fewer than a majority of the leases
//	          are left (endWithoutMajority): lost, expired as agreed, held for too long, or closed
//
// # What holds at all times
//
//   - Any two majorities have a server in common. So while a hold lives, no other hold is granted, and
//     the token of the next hold is greater.
//   - A Quorum does not re-enter a lease on one server that ctx carries (hold.Apart). All callers that have
//     this ctx would count that server's grant, and two of them could each have a majority.
//   - A server is asked for its lock first, and then for its marker. If the server loses its data
//     between the two requests, the marker is lost as well.
//   - A marker that was written during a round does not count for that round (errBegun): the server may
//     have granted the lock, and may have lost that grant before the marker was written. The marker
//     counts in the next round.
//   - A quorum begins only if all servers lack a quorum's marker at the same time: all have answered, all are asked
//     again, and all have the same marker as in their first answer.
//   - A request that replaces a marker names the marker that it replaces. So a late request changes
//     nothing.
//   - A hold begins only after the token is stored on a majority, and only if the leases of a majority
//     last until then.
//   - The order in which callers may ask (turn) affects only waiting times, not safety: if servers do
//     not answer, or have lost the order, every caller may ask.
//   - If a round is no grant, the locks that it has taken are given back, on servers that did not answer
//     too.
//
// # What may be called from where
//
// majorityHold.mu guards the leases of a hold and the reason of its end. life.mu guards the contexts of
// one lease and the reason of its end. No code holds both mutexes. Under them the code calls nothing
// that may block: no server, no cancel of a context, no telemetry and no log. It copies under the mutex,
// and makes such calls afterwards: see lose and life.end.
//
// The function each sends requests to several servers: it starts a goroutine for each server, and waits
// for all of them. What goes on for longer runs in the background of a Client, whose Close waits for it.
package quorum
