package keys

// QuorumMarker returns the key by which a server of a Quorum shows that it still has its data. No
// name maps to it, since names that begin with "holdfast_" are reserved.
func (s Space) QuorumMarker() string { return string(s) + "holdfast_quorum" }

// QuorumTurns returns the key at which a server of a Quorum notes who waits for the lock at that key.
func (s Space) QuorumTurns(key string) string { return s.own("holdfast_quorum_turns", key) }
