package keys

// QuorumMarker is the key by which a server of a Quorum shows that it still has its data. No
// name maps to it, since names that begin with "holdfast_" are reserved.
const QuorumMarker = "holdfast_quorum"
