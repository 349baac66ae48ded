// What a wait may end with besides a grant: that nothing is left to grant.

package hold

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Concluded ends an acquisition for which nothing is left to grant. No user sees it.
var Concluded = errors.New("concluded")

// Concluding is a Resource for which nothing may be left to grant, because what its holder would do
// has been done. Redis says so in place of a refusal, or a message does. The wait then ends with an
// error that matches Concluded, and the Resource knows the rest. The goroutine that acquires
// makes all these calls, one after the other.
type Concluding interface {
	Resource
	line.Hearer
	// Refused takes in an answer that grants nothing. An error ends the wait.
	Refused(call *conn.Call) error
	// Concludes reports whether Release does more than give the thing up, so that its outcome must
	// be known. Any goroutine may call it.
	Concludes() bool
}

// concluded returns the error with which an answer that grants nothing ends the wait, or nil.
func concluded(r Resource, call *conn.Call) error {
	if c, ok := r.(Concluding); ok {
		return c.Refused(call)
	}
	return nil
}

// concludes reports whether the last release of the hold does more than free it: it records a
// result, for example.
func (h *hold) concludes() bool {
	c, ok := h.resource.(Concluding)
	return ok && c.Concludes()
}
