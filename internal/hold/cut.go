// What happens when another client cuts a hold's time to live short: it is renewed sooner, and the
// log says so.

package hold

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// cutShort takes in that a renewal found only left of the hold in Redis, though its lease had
// longer to go. Another client with a shorter lease, such as a reader of Redisson, sets the time to
// live of what both hold, and will do so again. While that client lives, it leaves no less than
// what was found, so a renewal after half of that is soon enough.
func (h *hold) cutShort(left time.Duration) {
	h.mu.Lock()
	s := h.seldomToWrite()
	told := s.cut
	s.cut = true
	h.renewAt = min(h.renewAt, h.engine.Age()+max(left/2, MinLease/3))
	length := h.needs().renewal
	h.reschedule()
	if told {
		return
	}
	h.engine.Log.Warn("holdfast: another client, with a shorter lease, cuts this one short in Redis; "+
		"if it dies others get in before this lease is over",
		"kind", h.kind().Name, "name", engine.LogName(h.resource.Name()), "owner", h.owner().Short(),
		"left", engine.LogTime(left), "lease", engine.LogTime(length))
}
