// The audit: a line for each release by force, and for each refusal, so that it can be found out afterwards who took
// what from whom. No secret is in it, and nothing that Redis or a viewer sends moves a terminal.

package console

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// refusalsAMinute is how many refusals are printed in a minute. Strangers cause them, and could fill a disk.
const refusalsAMinute = 60

// audit prints the lines.
type audit struct {
	say func(line string) // nil: nothing is printed
	now func() time.Time

	mu      sync.Mutex
	minute  time.Time // when the minute whose refusals are counted began
	printed int       // in that minute
}

// released prints that a name was taken from its holders. What has been taken is printed always.
func (a *audit) released(r *http.Request, name string, from Holders) {
	var who []string
	for _, h := range from {
		who = append(who, view.Holder(h))
	}
	if len(who) == 0 {
		who = []string{"nobody: they did not hold it any more"}
	}
	a.print("release by force of " + view.Name(name) + ", taken from " + strings.Join(who, ", ") + asker(r))
}

// doubted prints that a name may have been taken from its holders. That is no refusal, and is printed always.
func (a *audit) doubted(r *http.Request, name string, err error) {
	a.print("release by force of " + view.Name(name) + asker(r) + ": " + view.Text(err.Error()))
}

// refused prints that something was refused, and why.
func (a *audit) refused(r *http.Request, what, why string) {
	a.mu.Lock()
	if now := a.now(); now.Sub(a.minute) > time.Minute {
		a.minute, a.printed = now, 0
	}
	a.printed++
	n := a.printed
	a.mu.Unlock()
	switch {
	case n == refusalsAMinute+1:
		a.print("further refusals of this minute are not printed")
	case n <= refusalsAMinute:
		a.print("refused: " + what + asker(r) + ": " + view.Text(why))
	}
}

// asker says who asked: by the address of the connection, which is a proxy's if there is one.
func asker(r *http.Request) string { return ", asked for by " + view.Text(r.RemoteAddr) }

func (a *audit) print(line string) {
	if a.say != nil {
		a.say(a.now().UTC().Format(time.RFC3339) + " " + line)
	}
}
