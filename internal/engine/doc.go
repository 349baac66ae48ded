// Package engine is what a Client lends to its synchronizers, so that they stay small:
// one connection manager, one subscription service, one renewal scheduler, one way to
// wait (package line), one way to clean up, and the owner ids.
//
// A synchronizer brings its scripts, and says how to try and how to release. It never
// waits, subscribes, renews or retries.
//
// # The three parts
//
//	the ledger    ledger: calls that count once though nobody owns what they change
//	renewals      sender, group: from the wheel to Redis, many in one call
//	a Client's    engine, work, registry, settle, grace, bounded, report, outage:
//	life          what is held, what Close waits for, what is reported
//
// # Cleaning up
//
// A call that may need a clean-up is counted by Begin and Done. Settle and Background run
// clean-ups on goroutines that Close waits for. Close ends things in this order: no call
// begins; waits and holds end with errs.Closed; renewals stop; calls are interrupted, except
// clean-ups; calls and clean-ups wind up, within closeGrace; subscriptions and connections end;
// last, what is still to be logged and measured.
package engine
