// Tables: rows whose columns stay as wide as they are, whatever comes later.

package cli

import (
	"bufio"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// table prints rows in columns. A cell that is wider than its column makes the column so wide from there on.
type table struct {
	out    io.Writer
	buffer *bufio.Writer
	widths []int
}

// measure makes the columns wide enough for rows that are printed later.
func (t *table) measure(rows ...[]string) {
	for _, row := range rows {
		for n, cell := range row {
			if n == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[n] = max(t.widths[n], ansi.StringWidth(cell))
		}
	}
}

// rows writes rows, and before the first one the heading.
func (t *table) rows(heading []string, rows ...[]string) error {
	if t.buffer == nil {
		t.measure(heading)
		rows = append([][]string{heading}, rows...)
	}
	for _, row := range rows {
		t.measure(row)
		var line strings.Builder
		for n, cell := range row {
			line.WriteString(cell)
			if n < len(row)-1 {
				line.WriteString(strings.Repeat(" ", t.widths[n]-ansi.StringWidth(cell)+2))
			}
		}
		if err := t.raw([]byte(line.String() + "\n")); err != nil {
			return err
		}
	}
	return nil
}

// raw writes a line that is no row.
func (t *table) raw(line []byte) error {
	if t.buffer == nil {
		t.buffer = bufio.NewWriter(t.out)
	}
	_, err := t.buffer.Write(line)
	return err
}

// flush has all that was written appear.
func (t *table) flush() error {
	if t.buffer == nil {
		return nil
	}
	return t.buffer.Flush()
}
