package rlock

import (
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// The scripts that the lock shares with its siblings, for the table that looks
// at all of them.
var (
	anyHash = lockhash.Hash{}
	nobody  = lease.Owner{}

	recountSource = anyHash.Recount(nobody, 0, 0).Script.Source()
	renewSource   = anyHash.Renew(nobody, 0).Script.Source()
	moveSource    = anyHash.Move(nobody, nobody, 0).Script.Source()
	stateSource   = anyHash.State().Script.Source()
)
