// Package screen is the live screen of holdfast top: what is in Redis, as a list that can be sorted and searched, and
// each name in detail, with what has happened at it of late.
//
// The screen is a model of Bubble Tea. What an Observer finds comes to it as a message, as a key does; what it
// shows is worked out anew from what it knows, by the server's clock. It only reads.
package screen

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/roster"
)

// Run shows on a terminal what an Observer finds, until somebody quits, ctx ends, or looking makes no sense. It
// returns nil if somebody quits, and else why it ended. title says what is looked at.
func Run(ctx context.Context, in, out *os.File, o *observe.Observer, title string) error {
	following, stop := context.WithCancel(ctx)
	p := tea.NewProgram(newModel(title), tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		err := o.Follow(following, func(c observe.Change) { p.Send(found{c, time.Now()}) })
		p.Send(over{err})
	}()
	last, err := p.Run()
	stop()
	<-followed
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m, is := last.(model); is {
		err = errors.Join(err, m.failed)
	}
	return err
}

// The messages that are not keys.
type (
	// found is what a look has found, and when this process got it.
	found struct {
		observe.Change
		at time.Time
	}
	// over says that there are no more looks.
	over struct{ err error }
	// second says that a second has passed: ages and what is left have changed.
	second time.Time
)

func everySecond() tea.Cmd {
	return tea.Every(time.Second, func(t time.Time) tea.Msg { return second(t) })
}

// model is all that the screen knows.
type model struct {
	title         string
	width, height int

	states []holdfast.Inspection
	events []holdfast.Event // the last ones, of all names
	missed bool             // some events are not among them
	looked time.Time        // when the last look that did not fail came, on the server's clock; zero if none did
	now    time.Time        // on this process's clock
	ahead  time.Duration    // by how much the server's clock is ahead of this process's
	err    error            // why the last look failed, wholly or for some names
	failed error            // why there are no more looks

	query     roster.Query
	shown     []holdfast.Inspection // what the query selects
	name      string                // of the row that is selected
	first     int                   // the first row on the screen
	open      bool                  // the selected name is shown in detail
	scrolled  int                   // by how many lines the detail is scrolled
	searching bool                  // keys go to the query's text
}

// kept is how many events are kept.
const kept = 1000

func newModel(title string) model {
	return model{title: title, now: time.Now(), query: roster.Query{Sort: roster.ByWaiters, Down: true}}
}

func (m model) Init() tea.Cmd { return everySecond() }

// Update takes in what has happened.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case found:
		m = m.take(msg)
	case over:
		m.failed = msg.err
		return m, tea.Quit
	case second:
		m.now = time.Time(msg)
		return m, everySecond()
	case tea.KeyPressMsg:
		var then tea.Cmd
		if m, then = m.press(msg); then != nil {
			return m, then
		}
	case tea.PasteMsg:
		if m.searching {
			m.query.Search += strings.ToLower(msg.Content)
		}
	}
	return m.selected(), nil
}

// take takes in what a look has found.
func (m model) take(f found) model {
	m.states, m.err, m.now = f.States, f.Err, f.at
	if f.Err == nil {
		if len(f.States) > 0 { // the latest was found just now
			latest := slices.MaxFunc(f.States, func(a, b holdfast.Inspection) int { return a.At.Compare(b.At) })
			m.ahead = latest.At.Sub(f.at)
		}
		m.looked = m.clock()
	}
	m.missed = m.missed || f.Missed > 0
	m.events = append(slices.Clip(m.events), f.Events...)
	m.events = m.events[max(0, len(m.events)-kept):]
	return m
}

// clock returns the time on the server's clock.
func (m model) clock() time.Time { return m.now.Add(m.ahead) }

// selected works out what the query selects. The name that is selected stays so while it is there; if it goes,
// the row that takes its place is selected.
func (m model) selected() model {
	before := m.row()
	m.shown = m.query.Of(m.states)
	at := slices.IndexFunc(m.shown, func(i holdfast.Inspection) bool { return i.Name == m.name })
	if at < 0 && !m.open {
		return m.at(before)
	}
	return m.inSight(at)
}

// row returns which row is selected; 0 if none is.
func (m model) row() int {
	return max(0, slices.IndexFunc(m.shown, func(i holdfast.Inspection) bool { return i.Name == m.name }))
}

// at selects a row, or the nearest that there is.
func (m model) at(row int) model {
	row = max(0, min(row, len(m.shown)-1))
	m.name = ""
	if len(m.shown) > 0 {
		m.name = m.shown[row].Name
	}
	return m.inSight(row)
}

// inSight scrolls the list so that a row is on the screen.
func (m model) inSight(row int) model {
	m.first = max(0, min(m.first, row, len(m.shown)-m.rows()))
	m.first = max(m.first, row-m.rows()+1)
	return m
}
