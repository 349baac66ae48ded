//go:build !linux

// A pause that is about as long as it says.

package work

import "time"

// pause waits for that long, give or take what time.Sleep does.
type pause struct{}

func newPause() (pause, error) { return pause{}, nil }

func (pause) wait(d time.Duration) error {
	time.Sleep(d)
	return nil
}
