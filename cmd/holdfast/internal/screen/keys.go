// Keys: what somebody may press, and what it does.

package screen

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/roster"
)

// press does what a key says. It returns a command if there is nothing to work out anew.
func (m model) press(key tea.KeyPressMsg) (model, tea.Cmd) {
	switch key.String() {
	case "ctrl+c":
		return m, tea.Quit
	case "ctrl+z":
		return m, tea.Suspend
	}
	switch {
	case m.searching:
		return m.search(key), nil
	case m.open:
		return m.pressInDetail(key.String())
	}
	return m.pressInList(key.String())
}

func (m model) pressInList(key string) (model, tea.Cmd) {
	switch key {
	case "q":
		return m, tea.Quit
	case "up", "k":
		m = m.at(m.row() - 1)
	case "down", "j":
		m = m.at(m.row() + 1)
	case "pgup":
		m = m.at(m.row() - m.rows())
	case "pgdown":
		m = m.at(m.row() + m.rows())
	case "home", "g":
		m = m.at(0)
	case "end", "G":
		m = m.at(len(m.shown) - 1)
	case "enter", "right", "l":
		m.open, m.scrolled = m.name != "", 0
	case "/":
		m.searching = true
	case "esc":
		m.query.Search = ""
	case "s":
		m.query = sortedNext(m.query)
	case "r":
		m.query.Down = !m.query.Down
	case "tab":
		m.query.Part = (m.query.Part + 1) % (roster.Counts + 1)
	}
	return m, nil
}

func (m model) pressInDetail(key string) (model, tea.Cmd) {
	switch key {
	case "q":
		return m, tea.Quit
	case "esc", "left", "h", "enter", "backspace":
		m.open = false
	case "up", "k":
		m.scrolled--
	case "down", "j":
		m.scrolled++
	case "pgup":
		m.scrolled -= m.lines()
	case "pgdown":
		m.scrolled += m.lines()
	case "home", "g":
		m.scrolled = 0
	}
	m.scrolled = max(0, min(m.scrolled, len(m.detail())-m.lines()))
	return m, nil
}

// search puts a key into the text that is searched for.
func (m model) search(key tea.KeyPressMsg) model {
	switch key.String() {
	case "enter":
		m.searching = false
	case "esc":
		m.searching, m.query.Search = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.query.Search)
		m.query.Search = m.query.Search[:len(m.query.Search)-size]
	case "ctrl+u":
		m.query.Search = ""
	default:
		m.query.Search += strings.ToLower(key.Key().Text)
	}
	return m
}

// orders are what the list may be sorted by, each first the way that operators want it.
var orders = []roster.Query{
	{Sort: roster.ByWaiters, Down: true},
	{Sort: roster.ByAge, Down: true},
	{Sort: roster.ByLeft},
	{Sort: roster.ByName},
}

// sortedNext returns the query sorted by the next column.
func sortedNext(q roster.Query) roster.Query {
	at := slices.IndexFunc(orders, func(o roster.Query) bool { return o.Sort == q.Sort })
	next := orders[(at+1)%len(orders)]
	q.Sort, q.Down = next.Sort, next.Down
	return q
}
