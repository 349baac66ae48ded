// The replies of the scripts. Each layout is in the head of the Lua file, and here.

package barrier

import "github.com/holdfast-go/holdfast/internal/conn"

// How a generation stands, as scripts say it.
const (
	open = iota
	tripped
	broken
	forgotten
	otherParties // of enter.lua alone, as is left
	left
)

// arrival is what enter.lua says of an arrival.
type arrival struct {
	how     int64 // how its generation stands
	trip    Trip  // zero if the reply names none, or it is not known how that ended
	parties int64 // if how is otherParties: for how many the generation under way is
}

func arrivalIn(call *conn.Call) arrival {
	a := arrival{how: call.Int(5)}
	switch {
	case call.Status() == conn.Done || a.how == tripped || a.how == broken:
		a.trip = Trip{Generation: call.Int(3), Arrival: int(call.Int(4))}
	case a.how == otherParties:
		a.parties = call.Int(3)
	}
	return a
}

// stateIn reads the reply of state.lua.
func stateIn(call *conn.Call) State {
	return State{Generation: call.Int(2), Parties: int(call.Int(3)), Arrived: int(call.Int(4))}
}
