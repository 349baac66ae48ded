// The reports of lanes to the referee, and its answers.

package main

import (
	"encoding/gob"
	"net"
	"time"
)

// topic says which fields of a note are set.
type topic int

const (
	// granted: Object, Call, At (after Lock returned), Token, Amount and how it was taken. The
	// referee answers with the register's value, so this is also how the hold reads it.
	granted topic = iota
	// holding: the lease lasted At.
	holding
	// writing: Value is the new value of the register; At as in holding. The referee answers.
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
	// told: a caller of a Once had the result of the work with that Token.
	told
	// arriving: a party of a barrier comes, at Call; its context ends at Deadline.
	arriving
	// awaited: the party's Await returned at At, as Ending says: in generation Token, with the arrival
	// Value.
	awaited
)

// note is one report of a lane. Instants are of the machine's wall clock, in ns.
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

	// For granted: whether the lane was ready to wait; whether the lease is renewed; the owner
	// in Redis, if the lease has one owner.
	Waited, Renewed bool
	Owner           string

	// For ended, if the lease was lost: why, as Release says.
	Why string

	// For ended, if the lease was lost: when its holder was notified, and by when it had to be, on this
	// process's clock. For granted and holding: the lease's deadline as it was known then.
	Told, Deadline int64
}

// answer is the referee's answer to granted and writing.
type answer struct {
	Value int64
	Stale bool // refused: another hold has presented a greater token
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

// stamp returns an instant in the form that notes have.
func stamp(t time.Time) int64 { return t.UnixNano() }
