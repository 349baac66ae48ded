// The id of a Client, which its owner ids begin with.

package engine

import "github.com/google/uuid"

// version is that of the UUIDs that Clients have as ids: 8, which is free for any
// use. Redisson's are of version 4, so that one sees from a holder whether its
// grant wrote a token.
const version = 8

// newClient returns the id of a new Client: random but for the version.
func newClient() string {
	id := uuid.New()
	id[6] = version<<4 | id[6]&0x0f
	return id.String()
}

// IsClient reports whether id is that of a Client of Holdfast.
func IsClient(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.Version() == version
}
