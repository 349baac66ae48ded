// The keys of a barrier.

package keys

const (
	barrierPrefix        = "holdfast_barrier"
	barrierPlacesPrefix  = "holdfast_barrier_places"
	barrierChannelPrefix = "holdfast_barrier_channel"
)

// Barrier holds the keys and the channel of one barrier.
type Barrier struct {
	Record  string // the generation under way, and how earlier ones ended: a hash
	Places  string // the places of the parties: a sorted set of owners by the ms of their expiry
	Channel string // on which the end of a generation is announced
}

// ForBarrier returns the keys and the channel of the barrier of that name. It takes the names that
// ForLock takes.
func (s Space) ForBarrier(name string) (Barrier, error) {
	if err := s.Check(name); err != nil {
		return Barrier{}, err
	}
	return Barrier{
		Record:  s.own(barrierPrefix, name),
		Places:  s.own(barrierPlacesPrefix, name),
		Channel: s.own(barrierChannelPrefix, name),
	}, nil
}
