// Small calls: those that begin and end every lock, in one piece and used again.

package conn

import "sync"

// Small is a call on two keys with three arguments of its own, all in one piece. Every
// lock is taken and released by one each, which would be half of its garbage.
type Small struct {
	Call
	keys    [2]string
	args    [3]any
	texts   [3]string
	numbers [3]int64
}

// Smalls are those that nobody uses.
type Smalls struct{ pool sync.Pool }

// Get returns a call of the script on two keys, without arguments yet. Put gives it
// back.
func (p *Smalls) Get(s *Script, key, beside string) *Small {
	c, used := p.pool.Get().(*Small)
	if !used {
		c = new(Small)
	}
	c.keys = [...]string{key, beside}
	c.Call = Call{Script: s, Keys: c.keys[:], Args: c.args[:], small: c}
	return c
}

// Put takes back a Call that Run has returned nil for, and that nobody will look at
// again. Any other is nothing to keep, nor is a call of which a sending was not heard.
func (p *Smalls) Put(c *Call) {
	s := c.small
	if s == nil || c.outstanding {
		return
	}
	*s = Small{}
	p.pool.Put(s)
}

// Text sets an argument.
func (c *Small) Text(i int, text string) {
	c.texts[i] = text
	c.args[i] = &c.texts[i]
}

// Number sets an argument.
func (c *Small) Number(i int, n int64) {
	c.numbers[i] = n
	c.args[i] = &c.numbers[i]
}
