package keys

const pausePrefix = "holdfast_pause"

// ForPause returns the key that says that the name is paused. It takes the names that ForLock takes.
func (s Space) ForPause(name string) (string, error) {
	if err := s.Check(name); err != nil {
		return "", err
	}
	return s.PauseAt(name), nil
}

// PauseAt returns the key of the pause of that name, which has been checked.
func (s Space) PauseAt(name string) string { return s.own(pausePrefix, name) }
