package keys

// QuorumMarker is the key by which a server of a quorum is known to have kept its
// data. No name maps to it, since all that begins with "holdfast_" is reserved.
const QuorumMarker = "holdfast_quorum"
