// The key of what is noted of releases by force.

package keys

const forcedPrefix = "holdfast_forced"

// ForForced returns the key that says who has released the thing of that name by force: a string. It takes the names
// that ForLock takes.
func (s Space) ForForced(name string) (string, error) {
	if err := s.Check(name); err != nil {
		return "", err
	}
	return s.own(forcedPrefix, name), nil
}
