// When the quiet forms of scripts are sent: see the package call.

package conn

import "github.com/holdfast-go/holdfast/internal/conn/call"

// refusesToPublish reports whether err, the answer to the last request, may mean that the server
// refuses scripts that publish. Then the next request is quiet.
func (t *attempt) refusesToPublish(err error) bool {
	if t.quiet || !t.call.Script.Refused(err) {
		return false
	}
	t.quiet = true
	return true
}

// hush reports whether to send the quiet form of a script.
func (m *Manager) hush(s *call.Script) bool { return s.Hushed() != nil && m.quiet.Load() }

// accepted records that a server has taken a request of the call. If it had refused the loud form,
// every later call sends the quiet form only.
func (t *attempt) accepted() {
	if t.quiet && t.m.quiet.CompareAndSwap(false, true) {
		t.m.log.Info("holdfast: redis refuses scripts that publish, so the Client publishes after them")
	}
}

// text returns the text of the script as the last request sent it; "" if there was none.
func (t *attempt) text() string {
	switch s := t.call.Script; {
	case s == nil:
		return ""
	case t.quiet:
		return s.Quiet()
	default:
		return s.Source()
	}
}
