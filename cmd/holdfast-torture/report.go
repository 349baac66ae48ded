// The report of a run, as JSON and as Markdown.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"
)

// report is the result of a run.
type report struct {
	Topology  string
	Ground    string
	Tier      string
	Seed      uint64
	Command   string
	Commit    string // the commit of the checkout that it was built from
	Began     time.Time
	Took      duration
	Server    string
	Machine   string
	Contended string
	Parts     []part `json:",omitempty"` // the runs that this report adds up, if there are several

	Grants        int
	Kinds         map[string]*kindReport
	Refused       map[string]int // attempts without a grant, by class
	Endings       map[string]int // of holds
	Faults        int
	FaultsByClass map[string]int
	Strikes       []strike // the faults of servers, for the JSON

	Overlaps           int // overlaps in a promised tier
	UnpromisedOverlaps int
	Writes             int // to the registers
	StaleWrites        int // taken
	Fenced             int // refused
	LostWakeUps        int
	Once               onceReport
	Barrier            barrierReport

	Histories         historyReport
	Losses            lossReport
	CalmHandovers     spread // before the first fault
	Handovers         spread
	HandoversInFaults spread
	Longest           []longWait
	Recovery          duration // the longest time from the end of an outage to a grant

	Violations []string
	Exceeded   []string `json:",omitempty"` // bounds of time, with -bounds=false
}

type kindReport struct {
	Grants        int
	WorstWait     duration
	WorstHandover duration // outside the shadows of faults; for exclusive kinds
	SlowHandovers int      // found by asking, not by a message
	Unpromised    int      // overlaps in windows in which Redis had forgotten
}

type historyReport struct{ Checked, Operations int }

// lossReport counts how holders were notified of losses. ByServer means long before the deadline; InTime means
// before the server's expiry.
type lossReport struct {
	Told, ByServer, InTime, Starved, Late int
	Margin                                duration
	Worst                                 duration // after the deadline, including the time in which the process did not run
	AfterResume                           duration // without that time
}

// longWait is one of the longest times from a release to the next holder, and what was in Redis
// meanwhile.
type longWait struct {
	Object     string
	After      duration // from the beginning of the run to the release
	Took       duration
	Kept       duration // the lock was held, or the first in the queue had not come for it
	ForOne     duration // Kept, for at most one owner
	OutOfReach duration // no master answered
	Free       duration // any lane could have taken it
}

type spread struct {
	Count           int
	P50, P99, Worst duration
}

// duration is a time.Duration that reads well in JSON.
type duration time.Duration

func (d duration) d() time.Duration { return time.Duration(d) }

func (d duration) String() string {
	r := time.Duration(d)
	switch {
	case r.Abs() > 10*time.Second:
		r = r.Round(time.Second)
	case r.Abs() > time.Millisecond:
		r = r.Round(100 * time.Microsecond)
	default:
		r = r.Round(time.Microsecond)
	}
	return r.String()
}

func (d duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (s *soak) newReport() *report {
	c := s.config
	r := &report{
		Topology:      c.Topology,
		Ground:        c.Ground + ": " + grounds[c.Ground].Says,
		Tier:          tierOf(c),
		Seed:          c.Seed,
		Command:       c.command(),
		Commit:        s.commit,
		Began:         s.began.UTC().Truncate(time.Second),
		Took:          duration(s.ended.Sub(s.began)),
		Server:        s.serverVersion(),
		Machine:       fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
		Contended:     fmt.Sprintf("%d processes x %d lanes for each kind, on %d names for each, leases of %v", c.Processes, lanesOfAKind*c.Width, c.names(), c.Lease),
		Grants:        s.referee.grants,
		Kinds:         map[string]*kindReport{},
		Refused:       s.referee.refused,
		Endings:       s.referee.endings,
		Faults:        s.log.total,
		FaultsByClass: s.log.counts,
		Strikes:       s.log.strikes,
	}
	return r
}

// command returns the command line that repeats the run.
func (c config) command() string {
	text := fmt.Sprintf("go run ./cmd/holdfast-torture -topology %s -for %v -seed %d -replicas %d -lease %v -processes %d",
		c.Topology, c.For, c.Seed, c.Replicas, c.Lease, c.Processes)
	if c.Ground != "plain" {
		text += " -ground " + c.Ground
	}
	if !slices.Equal(c.Kinds, kindsOf(c.Topology)) {
		text += " -kinds " + strings.Join(c.Kinds, ",")
	}
	if len(c.Faults) == 0 {
		text += " -faults none"
	} else if !slices.Equal(c.Faults, classesOf(c.Topology)) {
		text += " -faults '" + strings.Join(c.Faults, ",") + "'"
	}
	if c.Width != 1 {
		text += fmt.Sprintf(" -width %d", c.Width)
	}
	if c.Pauses != 1 {
		text += fmt.Sprintf(" -pauses %v", c.Pauses)
	}
	if !c.Bounds {
		text += " -bounds=false"
	}
	if c.Grants > 0 || c.Count > 0 {
		text += fmt.Sprintf(" -grants %d -faults-count %d -limit %v", c.Grants, c.Count, c.Limit)
	}
	return text
}

func tierOf(c config) string {
	switch {
	case c.Topology == "single":
		return "one server, append-only file with fsync always; emptied now and then, which is not promised"
	case c.Topology == "quorum":
		return "a majority of 5 independent servers"
	case c.Replicas == replicasOf[c.Topology]:
		return fmt.Sprintf("Replicas(%d): all there are", c.Replicas)
	}
	return fmt.Sprintf("Replicas(%d) of %d: a failover may forget grants, which is not promised away", c.Replicas, replicasOf[c.Topology])
}

func (r *report) kind(name string) *kindReport {
	k := r.Kinds[name]
	if k == nil {
		k = &kindReport{}
		r.Kinds[name] = k
	}
	return k
}

// publish writes the report to w, and to files if there is a directory for them.
func (r *report) publish(w io.Writer, dir string) error {
	if err := page.Execute(w, r); err != nil || dir == "" {
		return err
	}
	on := r.Topology
	if name, _, _ := strings.Cut(r.Ground, ":"); name != "plain" {
		on += "-" + name
	}
	base := filepath.Join(dir, "torture-"+on)
	if len(r.Parts) == 0 { // a sum has several seeds
		base += fmt.Sprintf("-%d", r.Seed)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	f, err := os.Create(base + ".md")
	if err != nil {
		return err
	}
	defer f.Close()
	return page.Execute(f, r)
}

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"sorted": func(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) },
	"join":   strings.Join,
}).Parse(`# Torture: {{.Topology}}, {{if .Parts}}{{len .Parts}} runs{{else}}seed {{.Seed}}{{end}}

{{if .Violations}}**FAILED**, {{len .Violations}} times:
{{range .Violations}}
- {{.}}{{end}}
{{else}}**Passed.** Nothing that is promised was broken.
{{end}}{{if .Exceeded}}
Took too long, which is not judged with -bounds=false, {{len .Exceeded}} times:
{{range .Exceeded}}
- {{.}}{{end}}
{{end}}
| | |
|---|---|
| {{if .Parts}}runs, listed below | {{len .Parts}}{{else}}repeat with | ` + "`{{.Command}}`" + `{{end}} |
| commit of the checkout, at the beginning | {{.Commit}} |
| ground | {{.Ground}} |
| tier | {{.Tier}} |
| began, took | {{.Began.Format "2006-01-02 15:04:05"}} UTC, {{.Took}} |
| server | {{.Server}} |
| machine | {{.Machine}} |
| contended | {{.Contended}} |
| grants | {{.Grants}} |
| faults | {{.Faults}} |
| **overlaps** | **{{.Overlaps}}** where none is promised; {{.UnpromisedOverlaps}} in windows in which Redis had forgotten grants |
| **stale writes taken** | **{{.StaleWrites}}** of {{.Writes}}; {{.Fenced}} reads and writes refused |
| histories | {{.Histories.Checked}} of {{.Histories.Operations}} operations in all, checked with Porcupine |
| lost wake-ups | {{.LostWakeUps}} |
{{if .Once.Keys}}| work of a Once | {{.Once.Effects}} effects of {{.Once.Keys}} keys{{range $why, $n := .Once.Again}}; {{$n}} again, as {{$why}}{{end}} |
{{end}}{{if .Barrier.Tripped}}| generations of barriers | {{.Barrier.Tripped}} tripped, {{.Barrier.Broken}} broken; {{.Barrier.Doubts}} parties were killed, or told that they cannot know |
{{end}}| losses told | {{.Losses.Told}}: {{.Losses.ByServer}} by the server's answer, {{.Losses.InTime}} by the deadline and before the server's expiry (margin {{.Losses.Margin}}), {{.Losses.Starved}} later because the process did not run, {{.Losses.Late}} later for no such reason |
| worst signal | {{.Losses.Worst}} after the deadline; {{.Losses.AfterResume}} without the time in which the process did not run |
| from release to next holder before the first fault | p50 {{.CalmHandovers.P50}}, p99 {{.CalmHandovers.P99}}, worst {{.CalmHandovers.Worst}} of {{.CalmHandovers.Count}} |
| from release to next holder | p50 {{.Handovers.P50}}, p99 {{.Handovers.P99}}, worst {{.Handovers.Worst}} of {{.Handovers.Count}} |
| the same beside outages, stops and kills | p50 {{.HandoversInFaults.P50}}, p99 {{.HandoversInFaults.P99}}, worst {{.HandoversInFaults.Worst}} of {{.HandoversInFaults.Count}} |
| from the end of an outage to a grant | worst {{.Recovery}} |
{{if .Parts}}
| one run | commit | began, took | server | grants | faults |
|---|---|---|---|---|---|
{{range .Parts}}| ` + "`{{.Command}}`" + ` | {{.Commit}} | {{.Began.Format "2006-01-02 15:04:05"}} UTC, {{.Took}} | {{.Server}} | {{.Grants}} | {{.Faults}} |
{{end}}{{end}}
| kind | grants | longest wait | longest from release to next holder | hand-overs above 0.5 s | overlaps not promised away |
|---|---|---|---|---|---|
{{range $kind, $k := .Kinds}}| {{$kind}} | {{$k.Grants}} | {{$k.WorstWait}} | {{$k.WorstHandover}} | {{$k.SlowHandovers}} | {{$k.Unpromised}} |
{{end}}
| the longest from release to next holder | at | took | of which a lease or a place in the queue had to run out | one, at the most | no master answered | it was free |
|---|---|---|---|---|---|---|
{{range .Longest}}| {{.Object}} | {{.After}} | {{.Took}} | {{.Kept}} | {{.ForOne}} | {{.OutOfReach}} | {{.Free}} |
{{end}}
| fault | injected |
|---|---|
{{range sorted .FaultsByClass}}| {{.}} | {{index $.FaultsByClass .}} |
{{end}}
| how a hold ended | |
|---|---|
{{range sorted .Endings}}| {{.}} | {{index $.Endings .}} |
{{end}}
| attempts without a grant | |
|---|---|
{{range sorted .Refused}}| {{.}} | {{index $.Refused .}} |
{{end}}`))

// commit returns the commit of the checkout, and whether the checkout differs from it. It is
// called when a run begins, just after go run has built the program from there; go run itself
// records no commit.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(hash))
	if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
		text += ", changed"
	}
	return text
}

// serverVersion returns what a server reports as its version.
func (s *soak) serverVersion() string {
	info, err := s.topology.onlookers()[0].InfoMap(context.Background(), "server").Result()
	if err != nil {
		return "unknown"
	}
	server := info["Server"]
	if v := server["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return "Redis " + server["redis_version"]
}
