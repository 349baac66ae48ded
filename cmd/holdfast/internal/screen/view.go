// What the screen shows: a line that says how it stands, the list or one name in detail, and the keys.

package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/roster"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// around is how many lines there are around the list or the detail: the heading, the state, the keys.
const around = 3

// lines returns how many lines there are for the detail, and rows how many for the list below its heading.
func (m model) lines() int { return max(1, m.height-around) }
func (m model) rows() int  { return max(1, m.lines()-1) }

// View shows the model.
func (m model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	v.WindowTitle = "holdfast top"
	return v
}

// text returns the screen, line by line.
func (m model) text() string {
	if m.width == 0 {
		return "" // the terminal has not said how large it is
	}
	var body []string
	if m.open {
		body = m.detail()
		body = body[min(m.scrolled, max(0, len(body)-m.lines())):]
		body = body[:min(len(body), m.lines())]
	} else {
		body = m.list()
	}
	for len(body) < m.lines() {
		body = append(body, "")
	}
	all := append([]string{m.heading(), m.state()}, body...)
	all = append(all, ansi.NewStyle().Faint().Styled(m.fit(m.keys())))
	return strings.Join(all[:min(len(all), m.height)], "\n")
}

// fit cuts a line so that it fits the screen.
func (m model) fit(line string) string { return ansi.Truncate(line, m.width, "…") }

func bold(text string) string { return ansi.NewStyle().Bold().Styled(text) }

// heading says what is looked at, and how it stands with all of it.
func (m model) heading() string {
	t := roster.TotalsOf(m.states)
	text := fmt.Sprintf("holdfast top  %s  %d locks, %d held, %d waited for by %d; %d counts",
		m.title, t.Locks, t.Held, t.Waited, t.Waiters, t.Counts)
	if !t.Longest.IsZero() {
		text += "; held for longest: " + view.Duration(m.clock().Sub(t.Longest))
	}
	return bold(m.fit(text))
}

// state says what is wrong, or what is searched for, or when it was looked last.
func (m model) state() string {
	switch {
	case m.err != nil:
		return ansi.NewStyle().Reverse(true).Styled(m.fit(view.Text(m.err.Error())))
	case m.searching:
		return m.fit("search: " + view.Text(m.query.Search) + "█")
	case m.looked.IsZero():
		return m.fit("looking for the first time")
	}
	text := fmt.Sprintf("by %s, at %s", m.query.Sort, m.looked.UTC().Format("15:04:05Z"))
	if part := []string{"", "locks", "counts"}[m.query.Part]; part != "" {
		text += ", only " + part
	}
	if m.query.Search != "" {
		text += ", with " + view.Text(m.query.Search)
	}
	return m.fit(text)
}

func (m model) keys() string {
	switch {
	case m.searching:
		return "enter keep  esc clear"
	case m.open:
		return "esc back  ↑↓ scroll  q quit"
	}
	return "↑↓ select  enter detail  s sort  r reverse  / search  tab locks or counts  q quit"
}

// columns are the heading of the list.
var columns = []string{"NAME", "KIND", "HELD BY", "SINCE", "LEFT", "WAITERS"}

// sortedBy says which column the list is sorted by.
var sortedBy = map[roster.Order]int{roster.ByName: 0, roster.ByAge: 3, roster.ByLeft: 4, roster.ByWaiters: 5}

// list returns the rows on the screen, below their heading.
func (m model) list() []string {
	heading := slices.Clone(columns)
	heading[sortedBy[m.query.Sort]] += map[bool]string{false: "↑", true: "↓"}[m.query.Down]
	cells := [][]string{heading}
	last := min(len(m.shown), m.first+m.rows())
	for _, i := range m.shown[m.first:last] {
		i = view.Aged(i, m.clock())
		cells = append(cells, []string{
			view.Name(i.Name), string(i.Kind), view.State(i), view.Ago(i.HeldSince, i.At), view.Left(i), view.Waiters(i),
		})
	}
	widths := m.widths(cells)
	lines := make([]string, 0, len(cells))
	for n, row := range cells {
		line := m.line(row, widths)
		switch {
		case n == 0:
			line = bold(line)
		case m.shown[m.first+n-1].Name == m.name:
			line = ansi.NewStyle().Reverse(true).Styled(line)
		}
		lines = append(lines, line)
	}
	if len(m.shown) == 0 && !m.looked.IsZero() {
		lines = append(lines, m.fit("nothing"))
	}
	return lines
}

// gap is what stands between two columns.
const gap = "  "

// widths returns how wide each column is: as its widest cell, except names and holders, which share what the
// screen has left.
func (m model) widths(cells [][]string) []int {
	widths := make([]int, len(columns))
	for _, row := range cells {
		for n, cell := range row {
			widths[n] = max(widths[n], ansi.StringWidth(cell))
		}
	}
	left := m.width - (len(columns)-1)*len(gap)
	for n, w := range widths {
		if n != 0 && n != 2 {
			left -= w
		}
	}
	if widths[0]+widths[2] > left {
		names := max(8, left-widths[2], min(widths[0], left/2))
		widths[0] = min(widths[0], names)
		widths[2] = max(4, left-widths[0])
	}
	return widths
}

// line returns the cells as one line of the screen.
func (m model) line(cells []string, widths []int) string {
	var b strings.Builder
	for n, cell := range cells {
		if n > 0 {
			b.WriteString(gap)
		}
		cell = ansi.Truncate(cell, widths[n], "…")
		b.WriteString(cell + strings.Repeat(" ", widths[n]-ansi.StringWidth(cell)))
	}
	return m.fit(b.String())
}

// detail returns all that is known of the selected name, and what has happened at it, the latest first.
func (m model) detail() []string {
	i := holdfast.Inspection{Name: m.name, Kind: holdfast.KindFree, At: m.clock()}
	at := slices.IndexFunc(m.states, func(i holdfast.Inspection) bool { return i.Name == m.name })
	if at >= 0 {
		i = view.Aged(m.states[at], m.clock())
	}
	lines := strings.Split(strings.TrimSuffix(view.Detail(i), "\n"), "\n")
	lines = append(lines, "", "What has happened since this began:")
	none := true
	for _, e := range slices.Backward(m.events) {
		if e.Name == m.name {
			none = false
			lines = append(lines, "  "+e.At.UTC().Format(time.RFC3339)+"  "+view.Event(e))
		}
	}
	switch {
	case m.missed:
		lines = append(lines, "  more, which was left out")
	case none:
		lines = append(lines, "  nothing that was seen")
	}
	for n := range lines {
		lines[n] = m.fit(lines[n])
	}
	return lines
}
