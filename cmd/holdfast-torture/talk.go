// What lanes tell the referee, and what it answers.

package main

import (
	"encoding/gob"
	"net"
	"time"
)

// topic says which of a note's fields count.
type topic int

const (
	// granted: Object, Call, At (after Lock returned), Token, Amount and how. Answered with
	// the register's value: this is also the hold's reading it.
	granted topic = iota
	// holding: the lease lasted At.
	holding
	// writing: Value is to be the register's; At as in holding. Answered.
	writing
	// ended: the hold has ended as Ending says; Call and At are those of Release.
	ended
	// failed: there was no grant; Ending is the class of the error.
	failed
	// countedDown: a latch was counted down between Call and At; Value is left.
	countedDown
	// waited: a latch's Wait returned at At.
	waited
	// stalled: the process did not run from Call to At.
	stalled
)

// note is what a lane tells. Instants are of the machine's wall clock, in ns.
type note struct {
	Topic  topic
	Lane   string
	Object string
	Call   int64
	At     int64
	Token  int64
	Amount int
	Value  int64
	Ending string

	// Of granted: the lane was ready to wait; the lease is renewed; whose it is in Redis,
	// where a lease has one owner.
	Waited, Renewed bool
	Owner           string

	// Of ended, if the lease was lost: why, as Release says it.
	Why string

	// Of ended, if the lease was lost: when that was told, and by which instant it
	// had to be, on this process's clock. Of granted and holding: until when the lease
	// lasts, by what was known then.
	Told, Deadline int64
}

// answer is what the referee says to granted and writing.
type answer struct {
	Value int64
	Stale bool // refused: another hold has shown a greater token
}

// line is one lane's connection to the referee.
type line struct {
	conn net.Conn
	enc  *gob.Encoder
	dec  *gob.Decoder
}

func newLine(conn net.Conn) *line {
	return &line{conn: conn, enc: gob.NewEncoder(conn), dec: gob.NewDecoder(conn)}
}

func (l *line) tell(n note) error { return l.enc.Encode(n) }

func (l *line) ask(n note) (answer, error) {
	var a answer
	err := l.enc.Encode(n)
	if err == nil {
		err = l.dec.Decode(&a)
	}
	return a, err
}

// stamp is an instant as notes have it.
func stamp(t time.Time) int64 { return t.UnixNano() }
