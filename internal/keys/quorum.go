package keys

// QuorumMarker is the key by which a server of a Quorum shows that it still has its data. No
// name maps to it, since names that begin with "holdfast_" are reserved.
const QuorumMarker = "holdfast_quorum"

// QuorumTurns returns the key at which a server of a Quorum notes who waits for the lock at that key.
func QuorumTurns(key string) string { return own("holdfast_quorum_turns", key) }
