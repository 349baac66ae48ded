// Releases by force, as holdfast inspect prints them.

package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/audit"
)

// Forced returns a line for each release by force.
func Forced(all []audit.Record, at time.Time) string {
	var text strings.Builder
	for _, r := range all {
		fmt.Fprintf(&text, "  forced   %s (%s) by %s, %s: taken from %s\n",
			r.At.UTC().Format(time.RFC3339), Ago(r.At, at), Text(r.By), Text(r.Where), Text(strings.Join(r.From, "; ")))
	}
	return text.String()
}
