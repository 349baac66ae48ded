// Package quorum has one lock on several independent servers. The lock is held while a majority of the
// servers hold it. It is Redlock with two additions: the lock has a token that grows, and the grant of a
// server that has lost its data does not count.
//
// Programs make a Quorum with holdfast.NewQuorum and holdfast.NewQuorumOf. docs/quorum.md says what a
// Quorum promises, and on what conditions. To hold several locks as one, see package multilock.
//
// # How a lease comes about
//
//	Quorum.acquire
//	├─ ctx carries a lease on it ── majorityHold.enter adds a lease to the hold, and asks no server
//	└─ ctx carries none ─────────── rounds begins one round after another, until a round is a grant, ctx
//	                                ends, or asking again is of no use. Between two rounds the caller pauses,
//	                                and sends the servers how long the caller has waited (see turn)
//	a round ─────────────────────── ask asks each server for its lock, and then for its marker
//	                                beginOrMarkLost deals with the servers that have no marker
//	                                grant writes the greatest token to a majority of the servers
//	                                giveBack gives back the locks of a round that is no grant
//
// On each server the lock is a lease.Locker of that server's Client, usually a Mutex. That Locker is
// requested, renewed and released in the same way as a single lock.
//
// # The marker of a server
//
// Each server has a key holdfast_quorum, which is called the marker. The marker shows that the server has
// kept its data. mark.lua writes the marker. A marker has an origin, a time by the server's clock, and the
// set of servers for which it was written. The origin names an event. Since that event, the server is
// known to have kept its data:
//
//	noMarker      ""       there is no marker
//	foundEmpty    "empty"  the server had no marker when a round asked it. The server is new, or has lost
//	                       its data. The next round that all servers answer finds out which
//	quorumBegan   "new"    no server of a set had a marker of a quorum, and a quorum began on the set
//	dataLost      "lost"   this server had no marker, but other servers of the set had markers. So this
//	                       server has lost its data
//
//	noMarker ──ask──► foundEmpty ──begin────────────► quorumBegan
//	                      │                                │ if the marker is of another set, and
//	                      └──beginOrMarkLost──► dataLost ◄─┘ its time is still to come
//	any of them ──the server loses its data──► noMarker
//
// The marker decides whether the grants of a server count for a set of servers (see trusts):
//
//	noMarker, foundEmpty         a grant of the server never counts
//	quorumBegan of this set      a grant of the server counts at once
//	quorumBegan of another set,  a grant of the server counts when the longest lease, from the time in the
//	or dataLost                  marker on, is over. Every lease that the server has forgotten has ended by then
//
// # The hold
//
//	lives     from the grant by a majority on. The Client of each server renews the lease on that server,
//	          and this lease ends by its own deadline. A server whose lease was lost is not asked again
//	is over   when the last Lease on the hold is released, or when fewer than a majority of the servers'
//	          leases are left (see endWithoutMajority). The other leases were lost, ended as fixed leases,
//	          ended by MaxHold, or ended by the Close of their Clients
//
// # What holds at all times
//
//   - Any two majorities have a server in common. So while a hold lives, no other hold is granted, and the
//     token of the next hold is greater.
//   - If ctx carries a lease on the lock of one server, a Quorum does not re-enter that lease (see
//     hold.Apart). Otherwise all callers that have this ctx would count the grant of that server, and two
//     of these callers could each have a majority.
//   - A server is asked for its lock first, and then for its marker. If the server loses its data between
//     the two requests, the marker is lost as well.
//   - A marker that was written during a round does not count for that round (see errBegun). Before the
//     marker was written, the server may have granted the lock, and may have lost that grant. The marker
//     counts in the next round.
//   - A quorum begins only if all servers lack a quorum's marker at the same time. To find that out, all
//     servers are asked, and when all have answered, all are asked again. Each server must have the same
//     marker as in its first answer.
//   - A request that replaces a marker names the marker that it replaces. So a request that arrives late
//     changes nothing.
//   - A hold begins only after the token is stored on a majority of the servers, and only if the leases of
//     a majority last until then.
//   - The order in which callers may ask (see turn) affects only how long callers wait. It does not affect
//     safety: if servers do not answer, or have lost the order, every caller may ask.
//   - If a round is no grant, the locks that the round has taken are given back, even on servers that did
//     not answer.
//
// # What may be called from where
//
// majorityHold.mu guards the leases of a hold, and the reason why the hold ended. life.mu guards the
// contexts of one lease, and the reason why that lease ended. No code holds both mutexes at the same time.
// Code that holds one of them calls nothing that may block: it asks no server, cancels no context, and
// calls neither telemetry nor the log. Such code copies what it needs, unlocks the mutex, and makes such
// calls after that: see lose and life.end.
//
// The function each sends requests to several servers. It starts a goroutine for each server, and waits
// for all these goroutines. What takes longer runs in the background of a Client, and Close of that Client
// waits for it.
package quorum
