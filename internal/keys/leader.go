package keys

// The prefixes of what an election has beside the keys of its lock.
const (
	leaderPrefix        = "holdfast_leader"
	leaderNamesPrefix   = "holdfast_leader_names"
	leaderChangesPrefix = "holdfast_leader_changes"
)

// Leader holds the keys and channels of one election. Its lock is that of the fair lock of the
// name.
type Leader struct {
	FairLock
	Record  string // what the leader says of itself: a hash
	Names   string // what the candidates in the queue say of themselves: a hash by owner
	Changes string // the channel on which changes of the leader are announced
}

// ForLeader returns the keys and channels of the election of that name. It takes the names that
// ForLock takes.
func (s Space) ForLeader(name string) (Leader, error) {
	if err := s.Check(name); err != nil {
		return Leader{}, err
	}
	return Leader{
		FairLock: s.FairLockAt(name),
		Record:   s.own(leaderPrefix, name),
		Names:    s.own(leaderNamesPrefix, name),
		Changes:  s.own(leaderChangesPrefix, name),
	}, nil
}
