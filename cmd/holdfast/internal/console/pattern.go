// The pattern: which names the console has anything to do with.

package console

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

// within reports whether the console has anything to do with a name.
func (s *Server) within(name string) bool { return s.Pattern == "" || inspect.Matches(s.Pattern, name) }

// outside says why a name is refused.
func (s *Server) outside(name string) string {
	return view.Name(name) + " is not a name of this console, which is for " + view.Name(s.Pattern) + " only"
}
