// The keys of numbered slots.

package keys

const (
	slotsPrefix        = "holdfast_slots"
	slotsTokenPrefix   = "holdfast_slots_token"
	slotsWaitingPrefix = "holdfast_slots_waiting"
	slotsAlivePrefix   = "holdfast_slots_alive"
	slotsChannelPrefix = "holdfast_slots_channel"
)

// Numbered holds the keys and the channel of the numbered slots of one name.
type Numbered struct {
	Taken   string // who has which number, and until when: a sorted set
	Token   string // the last fencing token that was given
	Waiting string // a sorted set {waiting owner: since when}
	Alive   string // a sorted set {waiting owner: until when its mark counts}
	Channel string // on which it is announced that a number has come free
}

// ForSlots returns the keys and the channel of the slots of that name. It takes the names that
// ForLock takes.
func (s Space) ForSlots(name string) (Numbered, error) {
	if err := s.Check(name); err != nil {
		return Numbered{}, err
	}
	return Numbered{
		Taken:   s.own(slotsPrefix, name),
		Token:   s.own(slotsTokenPrefix, name),
		Waiting: s.own(slotsWaitingPrefix, name),
		Alive:   s.own(slotsAlivePrefix, name),
		Channel: s.own(slotsChannelPrefix, name),
	}, nil
}
