// The id of a Client, with which its owner ids begin.

package engine

import "github.com/google/uuid"

// version is the version of the UUIDs that serve as Clients' ids: 8, which is free for any use.
// Redisson's ids are of version 4, so a holder's id shows whether its grant wrote a token.
const version = 8

// newClient returns the id of a new Client: random, except for the version.
func newClient() string {
	id := uuid.New()
	id[6] = version<<4 | id[6]&0x0f
	return id.String()
}

// IsClient reports whether id is the id of a Client of Holdfast.
func IsClient(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.Version() == version
}
