// The key by which a Client says who it is.

package keys

import (
	"crypto/sha256"
	"encoding/hex"
)

// clientPrefix is what the keys of Clients begin with. They share a hash tag, so that one request reads
// those of any number of Clients, in a cluster too.
const clientPrefix = "holdfast_client:{holdfast}:"

// Clients returns what the keys of Clients begin with.
func (s Space) Clients() string { return string(s) + clientPrefix }

// ForClient returns the key by which the Client with that id says who it is. The id itself is a secret:
// with it anybody could make the ids of the Client's owners, and release what they hold. So the key has
// a hash of it. Whoever sees an owner can find the key, and nobody can find the owner from the key.
func (s Space) ForClient(id string) string {
	sum := sha256.Sum256([]byte("holdfast client " + id))
	return s.Clients() + hex.EncodeToString(sum[:16])
}
