// The screen shows what it was told, on a terminal of any size, and does what keys say.

package screen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// lock returns a mutex that is held since so many seconds, for 30 s from noon, and that so many wait for.
func lock(name string, seconds, waiters int) holdfast.Inspection {
	return holdfast.Inspection{
		Name: name, Kind: holdfast.KindMutex, At: noon, HeldSince: noon.Add(-time.Duration(seconds) * time.Second),
		Holders:   []holdfast.Holder{{Who: "pod of " + name, Note: "job " + name, Count: 1, Remaining: 30 * time.Second}},
		Remaining: 30 * time.Second, Waiters: waiters,
	}
}

// three are three locks and a latch, in the order of their names.
func three() []holdfast.Inspection {
	return []holdfast.Inspection{
		lock("a", 10, 1), lock("b", 5, 7), lock("c", 3600, 0),
		{Name: "d", Kind: holdfast.KindLatch, At: noon, Value: 3, Remaining: holdfast.NoExpiry, Waiters: -1},
	}
}

// screen is a model under test.
type screen struct {
	t *testing.T
	model
}

// begin returns a screen of that size that has seen some states.
func begin(t *testing.T, width, height int, states []holdfast.Inspection) *screen {
	t.Helper()
	s := &screen{t, newModel("*")}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	s.sees(observe.Change{States: states})
	return s
}

// send has the screen take in a message, and returns what is to be done then.
func (s *screen) send(msg tea.Msg) tea.Cmd {
	m, then := s.Update(msg)
	s.model = m.(model)
	return then
}

// sees has the screen take in a look, which has come at noon on this process's clock.
func (s *screen) sees(c observe.Change) { s.send(found{c, noon}) }

// press presses keys, one after another.
func (s *screen) press(keys ...string) {
	for _, k := range keys {
		s.send(key(k))
	}
}

func key(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab,
		"backspace": tea.KeyBackspace, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
	}
	if code, special := codes[name]; special {
		return tea.KeyPressMsg{Code: code}
	}
	if letter, is := strings.CutPrefix(name, "ctrl+"); is {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// lines returns what the screen shows, without styles.
func (s *screen) lines() []string { return strings.Split(ansi.Strip(s.text()), "\n") }

// wants fails the test unless the screen shows each part.
func (s *screen) wants(parts ...string) {
	s.t.Helper()
	text := strings.Join(s.lines(), "\n")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.t.Errorf("%q is not on the screen:\n%s", part, text)
		}
	}
}

// names returns the names of the list, from the top.
func (s *screen) names() (names string) {
	for _, line := range s.lines()[around:] {
		if first, _, _ := strings.Cut(line, " "); len(first) == 1 && first != "↑" {
			names += first
		}
	}
	return names
}

// marked returns the name that is shown as selected.
func (s *screen) marked() string {
	for _, line := range strings.Split(s.text(), "\n") {
		if strings.HasPrefix(line, "\x1b[7m") {
			first, _, _ := strings.Cut(ansi.Strip(line), " ")
			return first
		}
	}
	return ""
}

func TestTheMostWaitedForComesFirst(t *testing.T) {
	s := begin(t, 100, 20, three())
	s.wants("3 locks, 3 held, 2 waited for by 8; 1 counts; held for longest: 1h00m", "WAITERS↓",
		"pod of b", "5s ago", "30s", "3 to come")
	for n, want := range []string{"bacd", "cabd", "abcd", "abcd", "bacd"} {
		redistest.Equal(t, s.names(), want, "%s, want %s (%d)", want, n)
		s.press("s")
	}
	s.press("r")
	s.wants("SINCE↑")
	if got := s.names(); got != "bacd" { // what is not known comes last
		t.Errorf("%s", got)
	}
}

func TestTheSelectedNameStaysSelected(t *testing.T) {
	s := begin(t, 100, 20, three())
	s.press("down")
	if s.marked() != "a" {
		t.Fatalf("%s is selected", s.marked())
	}
	states := three()
	states[0].Waiters = 100 // a comes first now
	s.sees(observe.Change{States: states})
	redistest.Equal(t, s.marked(), "a", "%s is selected")
	s.sees(observe.Change{States: states[1:]}) // a has gone
	redistest.Equal(t, s.marked(), "b", "%s is selected in its place")
	s.sees(observe.Change{})
	s.wants("nothing")
	s.press("down", "up", "enter", "end")
}

func TestManyNamesAreScrolled(t *testing.T) {
	var many []holdfast.Inspection
	for n := range 1000 {
		many = append(many, lock(fmt.Sprintf("n%03d", n), n, 0))
	}
	s := begin(t, 80, 14, many) // ten rows
	s.press("pgdown")
	redistest.Equal(t, s.marked(), "n010", "%s is selected")
	s.press("end")
	redistest.Equal(t, s.marked(), "n999", "%s is selected")
	s.wants("n990")
	s.press("home", "down")
	redistest.Equal(t, s.marked(), "n001", "%s is selected")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 1000})
	s.press("end")
	s.wants("n004", "n999")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 14})
	redistest.Equal(t, s.marked(), "n999", "%s is selected after the screen has shrunk")
}

func TestSearchFindsNamesHoldersAndNotes(t *testing.T) {
	s := begin(t, 100, 20, three())
	s.press("/", "J", "o", "b", " ", "C")
	s.wants("search: job c█")
	redistest.Equal(t, s.names(), "c", "%s")
	s.press("backspace", "a", "enter")
	s.wants(`with job a`)
	redistest.Equal(t, s.names(), "a", "%s")
	s.press("esc")
	redistest.Equal(t, s.names(), "bacd", "%s")
	s.press("tab", "tab")
	s.wants("only counts")
	redistest.Equal(t, s.names(), "d", "%s")
}

func TestANameInDetail(t *testing.T) {
	s := begin(t, 120, 20, three())
	passed := holdfast.Event{What: holdfast.EventPassed, Name: "b", Kind: holdfast.KindMutex, At: noon.Add(-time.Minute),
		From: holdfast.Holder{Who: "one"}, Holder: holdfast.Holder{Who: "two"}}
	s.sees(observe.Change{States: three(), Events: []holdfast.Event{passed}})
	s.press("enter")
	s.wants("b: mutex", "held by  pod of b", `"job b"`, "waiting  7", "2026-11-25T11:59:00Z  passed from one", "to two")
	s.sees(observe.Change{States: three()[2:]}) // b has gone, and is still what somebody looks at
	s.wants("b: free", "passed from one")
	s.press("esc")
	s.wants("NAME")
}

func TestAgesGoOnBetweenLooks(t *testing.T) {
	s := begin(t, 100, 20, three())
	s.send(second(noon.Add(20 * time.Second)))
	s.wants("25s ago", "10s ")
	s.send(second(noon.Add(time.Hour))) // nobody has looked since: it may be over
	s.wants("0s ")
}

// The server's clock counts, whatever this process's says.
func TestAgesAreByTheServersClock(t *testing.T) {
	s := begin(t, 100, 20, nil)
	s.send(found{observe.Change{States: three()}, noon.Add(-time.Hour)})
	s.wants("5s ago", "at 12:00:00Z")
}

func TestWhatIsWrongIsShown(t *testing.T) {
	s := begin(t, 100, 20, three())
	s.sees(observe.Change{States: three(), Err: errors.New("holdfast: no answer\x1b[2J")})
	s.wants(`no answer\x1b[2J`, "pod of b")
	s.sees(observe.Change{States: three()})
	s.wants("by waiters, at 12:00:00Z")
	if then := s.send(over{holdfast.ErrDenied}); then == nil || !errors.Is(s.failed, holdfast.ErrDenied) {
		t.Error("the screen goes on when there are no more looks")
	}
}

func TestKeysThatEndIt(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"enter", "q"}, {"/", "ctrl+c"}} {
		s := begin(t, 100, 20, three())
		var then tea.Cmd
		for _, k := range keys {
			then = s.send(key(k))
		}
		if then == nil {
			t.Errorf("%v: it goes on", keys)
		} else if _, quits := then().(tea.QuitMsg); !quits {
			t.Errorf("%v: %v", keys, then())
		}
	}
}

// FuzzScreen: whatever is shown, no line is too wide, there are no more lines than the screen has, and no text
// of another program does anything to the terminal.
func FuzzScreen(f *testing.F) {
	f.Add("a\x1b[2J\n", "日本語日本語日本語", 20, 5, "s/x")
	f.Add(strings.Repeat("long", 100), "\u202e\x9b1mwho", 7, 1, "\rj")
	f.Fuzz(func(t *testing.T, name, who string, width, height int, keys string) {
		width, height = 1+abs(width)%300, 1+abs(height)%100
		i := lock(name, 5, 2)
		i.Holders[0].Who, i.Holders[0].Note = who, who
		s := begin(t, width, height, append(three(), i))
		for n, k := range keys + "\x1b" {
			if n > 30 {
				break
			}
			switch k {
			case '\r':
				s.press("enter")
			case '\x1b':
				s.press("esc")
			default:
				s.send(tea.KeyPressMsg{Code: k, Text: string(k)})
			}
			lines := strings.Split(s.text(), "\n")
			if len(lines) > height {
				t.Fatalf("%d lines on a screen of %d", len(lines), height)
			}
			for _, line := range lines {
				if w := ansi.StringWidth(line); w > width {
					t.Fatalf("%d wide on a screen of %d: %q", w, width, line)
				}
				if bare := ansi.Strip(line); strings.ContainsAny(bare, "\x1b\u009b\x07\r") {
					t.Fatalf("%q", line)
				}
			}
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }
