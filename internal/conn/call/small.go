// Small calls: the calls that begin and end every lock, allocated in one piece and reused.

package call

import "sync"

// Small is a call on two keys with three arguments of its own, all in one piece. Every lock
// takes one Small to acquire and one to release, which would otherwise be half of the lock's
// garbage.
type Small struct {
	Call
	keys    [2]string
	args    [3]any
	texts   [3]string
	numbers [3]int64
}

// Smalls keeps the calls that are not in use.
type Smalls struct{ pool sync.Pool }

// Get returns a call of the script on two keys, without arguments. Put gives it back.
func (p *Smalls) Get(s *Script, key, beside string) *Small {
	c, used := p.pool.Get().(*Small)
	if !used {
		c = new(Small)
	}
	c.keys = [...]string{key, beside}
	c.Call = Call{Script: s, Keys: c.keys[:], Args: c.args[:], small: c}
	return c
}

// Put takes back a Call for which Run has returned nil, and which the caller will not look at
// again. It drops a Call that did not come from Get, and one with a request whose answer was never
// heard.
func (p *Smalls) Put(c *Call) {
	s := c.small
	if s == nil || c.outstanding {
		return
	}
	*s = Small{}
	p.pool.Put(s)
}

// SetText sets an argument.
func (c *Small) SetText(i int, text string) {
	c.texts[i] = text
	c.args[i] = &c.texts[i]
}

// SetNumber sets an argument.
func (c *Small) SetNumber(i int, n int64) {
	c.numbers[i] = n
	c.args[i] = &c.numbers[i]
}
