// The key of what is noted of releases by force.

package keys

const forcedPrefix = "holdfast_forced"

// ForForced returns the key that says who has released the thing of that name by force: a string. It takes the names
// that ForLock takes.
func ForForced(name string) (string, error) {
	if err := Check(name); err != nil {
		return "", err
	}
	return own(forcedPrefix, name), nil
}
