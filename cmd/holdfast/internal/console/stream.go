// Streams: what a page gets, by server-sent events.

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

const (
	patience = 10 * time.Second // for how long one message may wait for a viewer that does not read
	silence  = 15 * time.Second // after how long without news a viewer hears that the console lives
)

// teller makes the messages for one viewer.
type teller interface{ next(m moment) any }

// full is the last message to a viewer that has to make room for another one.
type full struct {
	Full bool `json:"full"`
}

// list streams one page of the list.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query, page := askedFor(r.URL.Query())
	s.stream(w, r, s.all, &pager{asked: query, at: page})
}

// one streams one name.
func (s *Server) one(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if !s.within(name) {
		s.refuse(w, r, http.StatusForbidden, "a look at "+view.Name(name), s.outside(name))
		return
	}
	h := s.hubOf(name)
	s.stream(w, r, h, &closeUp{name: name, past: s.past, remote: h == s.all})
}

// stream sends a viewer everything, and then what is new, until the viewer goes. A viewer that comes back after a break
// gets everything again: a page of rows is small, and what was missed is not kept for each viewer. A viewer that does
// not read gets what is new in one message later; one that reads nothing at all is dropped.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, h *hub, t teller) {
	me := s.viewers.enter(addressOf(r))
	defer s.viewers.leave(me)
	news, leave := h.join()
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold it back
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // for what else comes on this connection
	beat := time.NewTicker(silence)
	defer beat.Stop()
	for number := 1; ; number++ {
		// The first look may take long, if there are very many names: the page hears of it at once.
		if err := s.send(w, out, number, t.next(h.known())); err != nil {
			return
		}
		select {
		case <-news:
		case <-beat.C:
		case <-me.gone:
			_ = s.send(w, out, number+1, full{true}) // whoever does not take it goes too
			return
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// send sends one message, or gives up a viewer that does not take it.
func (s *Server) send(w http.ResponseWriter, out *http.ResponseController, number int, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := out.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", number, text); err != nil {
		return err
	}
	return out.Flush()
}
