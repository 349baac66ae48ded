// These workloads are about very much of something. They are a program of their own, cmd/scale.

package work

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names of the workloads. Each contender is another size or case of the same.
const (
	ScaleHeld    = "scale/held"
	ScaleKilled  = "scale/killed"
	ScaleWaiters = "scale/waiters"
	ScaleClients = "scale/clients"
	ScaleNames   = "scale/names"

	ScaleContended = "scale/contended"
)

// The contenders of ScaleHeld, ScaleKilled, ScaleNames and ScaleContended.
const (
	HeldNear   = "near"
	HeldAway   = "10 ms away"
	Killed     = "1 000 Clients"
	NamesTotal = "1 000 000 names"
	NamesHeld  = "10 000 names"
)

// WaitersOf has the numbers of waiters in ScaleWaiters.
var WaitersOf = []int{10, 100, 1000, 10_000, 100_000}

// ClientsOf has the numbers of Clients in ScaleClients, and ClientsDo what they do.
var (
	ClientsOf = []int{10, 100, 1000}
	ClientsDo = []string{"idle", "holding", "waiting"}
)

// Waiters returns the contender of ScaleWaiters with that many.
func Waiters(n int) string { return fmt.Sprintf("%d waiters", n) }

// Clients returns the contender of ScaleClients with that many that do that.
func Clients(n int, do string) string { return fmt.Sprintf("%d %s", n, do) }

func scale() []Workload {
	var waiters, clients []string
	for _, n := range WaitersOf {
		waiters = append(waiters, Waiters(n))
	}
	for _, do := range ClientsDo {
		for _, n := range ClientsOf {
			clients = append(clients, Clients(n, do))
		}
	}
	return []Workload{{
		Name:       ScaleHeld,
		Title:      "1 000 000 held locks of one Client, beside 6 processes of 256 goroutines that lock and unlock",
		Contenders: []string{HeldNear, HeldAway},
		Window:     Window{Full: 40 * time.Second, Quick: 12 * time.Second, Setup: 60 * time.Second, Rounds: 1},
		Scale: func(contender string, quick bool) []string {
			args := []string{"held", "-locks", "1000000", "-busy", "6", "-for", "40s"}
			if quick {
				args = []string{"held", "-locks", "20000", "-busy", "2", "-for", "12s"}
			}
			if contender == HeldAway {
				args = append(args, "-away", "10ms")
			}
			return args
		},
	}, {
		Name:       ScaleKilled,
		Title:      "a server that is killed under many Clients, of which one half holds and the other waits, and is back after 3 s",
		Contenders: []string{Killed},
		Window:     Window{Full: 3 * time.Second, Setup: 12 * time.Second, Rounds: 3},
		Scale: func(_ string, quick bool) []string {
			if quick {
				return []string{"clients", "-clients", "200"}
			}
			return []string{"clients", "-clients", "1000"}
		},
	}, {
		Name:       ScaleWaiters,
		Title:      "one name that many want, in 8 processes: while it is held, and then until each had its turn",
		Contenders: waiters,
		Window:     Window{Full: 3 * time.Second, Setup: 5 * time.Second, Rounds: 1},
		Scale: func(contender string, quick bool) []string {
			n, _, _ := strings.Cut(contender, " ")
			if i, _ := strconv.Atoi(n); quick && i > 10_000 {
				n = "10000"
			}
			return []string{"waiters", "-waiters", n, "-for", "3s"}
		},
	}, {
		Name:       ScaleClients,
		Title:      "Clients with connections of their own, in 8 processes",
		Contenders: clients,
		Window:     Window{Full: 4 * time.Second, Setup: 3 * time.Second, Rounds: 1},
		Scale: func(contender string, quick bool) []string {
			n, do, _ := strings.Cut(contender, " ")
			if i, _ := strconv.Atoi(n); quick && i > 200 {
				n = "200"
			}
			return []string{"gather", "-clients", n, "-do", do, "-for", "4s"}
		},
	}, {
		Name:       ScaleContended,
		Title:      "one Client that waits for very many names, each of which another holds",
		Contenders: []string{NamesHeld},
		Window:     Window{Full: 6 * time.Second, Setup: 8 * time.Second, Rounds: 3},
		Scale: func(_ string, quick bool) []string {
			if quick {
				return []string{"contended", "-names", "1000", "-for", "3s"}
			}
			return []string{"contended"}
		},
	}, {
		Name:       ScaleNames,
		Title:      "names that are used once, and what is left of them (days pass on an embedded server)",
		Contenders: []string{NamesTotal},
		Window:     Window{Full: 30 * time.Second, Setup: 10 * time.Second, Rounds: 1},
		Scale: func(_ string, quick bool) []string {
			if quick {
				return []string{"names", "-names", "20000", "-later", "2000"}
			}
			return []string{"names"}
		},
	}}
}
