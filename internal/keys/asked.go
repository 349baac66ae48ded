// The keys of what is asked of a lock's holder.

package keys

const (
	askedPrefix  = "holdfast_lock_asked"
	newestPrefix = "holdfast_lock_newest"
)

// AskedAt returns the key that names the holder that is asked to give up the lock of that name, which has been
// checked.
func (s Space) AskedAt(name string) string { return s.own(askedPrefix, name) }

// NewestAt returns the key that lists the newest that want the lock of that name, which has been checked.
func (s Space) NewestAt(name string) string { return s.own(newestPrefix, name) }
