// Lines for a terminal.

package view

import (
	"strconv"
	"strings"
)

// Plain returns a text of one or more lines in which whatever would do something to a terminal is written out: \x1b.
func Plain(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsPrint(r) {
			out.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}
