// Package model checks the protocol of Holdfast's locks, and not its code: a
// small model of it is explored to the end, every order of events in turn.
//
// In the model are some clients and one server, with a queue or without, or a quorum
// of three; requests, replies and messages that are delayed, lost or repeated; clocks
// that run at different rates; clients that stop and go on; a server that loses its
// data; and a resource that is written under the lock. Time is counted in ticks, and
// of every instant only what is left is remembered, so that there is a finite number
// of states.
//
// What is checked, in every state: that no two clients are inside who should know
// better; that the resource takes no write of a holder that has been overtaken; and
// that nothing is held for nobody, and no place kept, once a clean-up is over. Each
// rule of the protocol can be left out. Then the model must show what goes wrong, or
// it would show nothing.
//
// A second model, in line_test.go, is of what the first leaves out: one process whose waiters
// take turns in one place of the queue, the seat. It shows which messages they may believe, and
// what a clean-up must give up.
package model
