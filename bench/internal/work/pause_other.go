//go:build !linux

// A pause lasts about as long as it says.

package work

import "time"

// pause waits for a given time, as precisely as time.Sleep does.
type pause struct{}

func newPause() (pause, error) { return pause{}, nil }

func (pause) wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}
