// How old something at a server is, by two clocks.

package engine

import (
	"sync"
	"time"
)

// Aging estimates how old something at a server is. The server's clock alone may be set forward, as it is
// soon after a machine has started, so the time that this process has seen pass counts too. The zero value
// has seen nothing.
type Aging struct {
	mu   sync.Mutex
	what string        // what was seen last
	age  time.Duration // how old it was then, by the server's clock
	seen time.Time     // when that was
}

// Of returns how old the thing named what is. age is its age by the server's clock.
func (a *Aging) Of(what string, age time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if what != a.what {
		a.what, a.age, a.seen = what, age, time.Now()
	}
	return min(age, a.age+time.Since(a.seen))
}
