// Package grounds runs the conformance suite and a short torture on each ground. A ground is a
// make of server, or something that lies between a program and its Redis in the field. The package
// has no code except this test.
package grounds

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// root is the module's folder.
const root = "../../.."

var (
	which = flag.String("grounds", "none", "which grounds to run on: none, list, quick, all, or the name of one")
	table = flag.String("report", "", "file to write the table to")
)

// ground is a setting in which the suite and the torture run.
type ground struct {
	name    string
	server  string   // the name that .ci/servers knows; empty means the usual server
	conform string   // the tests of the suite
	torture []string // arguments, one element for each run
	quick   bool
}

const everyTopology = "^TestConformance_(Standalone|Replicated|Sentinel|Cluster|FewRights)$"

var topologies = []string{"-topology single", "-topology sentinel", "-topology cluster", "-topology quorum"}

var grounds = []ground{
	{name: "plain", conform: everyTopology, torture: topologies},
	{name: "Redis 6.2", server: "redis6", conform: everyTopology, torture: topologies},
	{name: "Redis 8", server: "redis8", conform: everyTopology, torture: topologies},
	{name: "Valkey 9", server: "valkey9", conform: everyTopology, torture: topologies},
	{name: "TLS and credentials that rotate", conform: on("TLS, and"), quick: true,
		torture: []string{"-topology single -ground tls", "-topology cluster -ground tls", "-topology quorum -ground tls"}},
	{name: "30 ms of lag", conform: on("a lag"), quick: true,
		torture: []string{"-topology single -ground lag", "-topology sentinel -ground lag", "-topology cluster -ground lag"}},
	{name: "NewFailoverClusterClient", conform: on("Sentinel, NewFailoverClusterClient"), torture: []string{"-topology sentinel -ground failover"}},
	{name: "a cluster client that asks replicas", conform: "^TestConformance_Cluster$/(ReadOnly|RouteByLatency)", torture: []string{"-topology cluster -ground routing"}},
	{name: "IPv6", conform: on("a cluster on IPv6"), torture: []string{"-topology single -ground ipv6", "-topology cluster -ground ipv6"}},
	{name: "odd names", conform: on("names with braces")},
	{name: "a million keys of strangers", conform: on("a million keys"), torture: []string{"-topology single -ground foreign"}},
	{name: "a thousand callers", torture: []string{"-topology single -ground callers", "-topology cluster -ground callers"}},
}

// on returns the pattern that chooses one of the grounds of TestConformance_Grounds.
func on(name string) string {
	return "^TestConformance_Grounds$/^" + strings.ReplaceAll(name, " ", "_")
}

// result is the outcome of one run.
type result struct {
	Server                                             string
	Grants, Faults, Overlaps, StaleWrites, LostWakeUps int
}

func TestGrounds(t *testing.T) {
	chosen := slices.DeleteFunc(slices.Clone(grounds), func(g ground) bool {
		return *which != "all" && *which != g.name && (*which != "quick" || !g.quick)
	})
	switch {
	case *which == "none":
		t.Skip("on no ground: -grounds=list shows which there are")
	case *which == "list":
		for _, g := range grounds {
			fmt.Println(g.name)
		}
		return
	case len(chosen) == 0:
		t.Fatalf("-grounds=%s: there is no such ground", *which)
	}
	text := &bytes.Buffer{}
	fmt.Fprint(text, "| ground | server | torture | conformance tests passed | grants | faults | overlaps | stale writes | lost wake-ups | took |\n|---|---|---|---|---|---|---|---|---|---|\n")
	began := time.Now()
	for _, g := range chosen {
		t.Run(g.name, func(t *testing.T) { g.run(t, text) })
	}
	fmt.Fprintf(text, "\nIn all: %v.\n", time.Since(began).Round(time.Second))
	t.Logf("\n%s", text)
	if *table != "" && !t.Failed() {
		redistest.Must(t, os.WriteFile(*table, append([]byte(heading()), text.Bytes()...), 0o644))
	}
}

// run runs the suite and the torture, and writes a row for each run of the torture.
func (g ground) run(t *testing.T, rows *bytes.Buffer) {
	env := append(os.Environ(), "HOLDFAST_SERVERS=1", "HOLDFAST_TURN=") // all of them
	if g.server != "" {
		out, err := exec.Command(filepath.Join(root, ".ci/servers"), g.server).Output()
		if err != nil {
			t.Fatalf(".ci/servers %s: %v", g.server, err)
		}
		env = append(env, "HOLDFAST_REDIS_SERVER="+strings.TrimSpace(string(out)))
	}
	began := time.Now()
	passed := g.conformance(t, env)
	runs := g.torture
	if len(runs) == 0 {
		fmt.Fprintf(rows, "| %s | %s | none | %d | | | | | | %v |\n", g.name, cmp.Or(g.server, "usual"), passed, time.Since(began).Round(time.Second))
	}
	for i, args := range runs {
		r := g.tortured(t, env, args)
		tests := ""
		if i == 0 && passed > 0 {
			tests = fmt.Sprint(passed)
		}
		fmt.Fprintf(rows, "| %s | %s | `%s` | %s | %d | %d | %d | %d | %d | %v |\n", g.name, r.Server, args, tests,
			r.Grants, r.Faults, r.Overlaps, r.StaleWrites, r.LostWakeUps, time.Since(began).Round(time.Second))
		began = time.Now()
	}
}

// conformance runs the suite and returns how many tests have passed.
func (g ground) conformance(t *testing.T, env []string) (passed int) {
	if g.conform == "" {
		return 0
	}
	cmd := exec.Command("go", "test", "-count=1", "-json", "-timeout=20m", "./internal/test/conformance", "-run", g.conform)
	cmd.Dir, cmd.Env = root, env
	out, err := cmd.Output()
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Test != "" {
			if event.Action == "pass" {
				passed++
			}
			if err != nil && event.Action == "output" {
				t.Log(strings.TrimSuffix(event.Output, "\n"))
			}
		}
	}
	if err != nil || passed == 0 {
		t.Errorf("the suite on %s: %d tests passed, %v", g.name, passed, err)
	}
	return passed
}

// tortured runs the torture.
func (g ground) tortured(t *testing.T, env []string, args string) result {
	dir := t.TempDir()
	arguments := append([]string{"run", "./cmd/holdfast-torture", "-for", "20s", "-quiet", "-report", dir}, strings.Fields(args)...)
	cmd := exec.Command("go", arguments...)
	cmd.Dir, cmd.Env = root, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("torture %s: %v\n%s", args, err, out)
	}
	reports, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var r result
	if len(reports) != 1 {
		t.Errorf("torture %s: %d reports", args, len(reports))
		return r
	}
	text, err := os.ReadFile(reports[0])
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	redistest.Check(t, err)
	return r
}

// heading returns what the table shows and how to repeat it.
func heading() string {
	commit, err := exec.Command("git", "-C", root, "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	long := ""
	if os.Getenv("HOLDFAST_LONG") == "1" {
		long = "HOLDFAST_LONG=1 "
	}
	return fmt.Sprintf(`# Grounds

The conformance suite, and 20 s of torture with all faults, on each ground. Repeat it with

    %sgo test -count=1 -timeout 2h -v ./internal/test/grounds -grounds=%s

Commit %s, %s UTC. With HOLDFAST_LONG=1 the suite tries every kind of lock on every
ground. Without it, it tries one kind on the grounds that are not a server's make.

`, long, *which, strings.TrimSpace(string(commit)), time.Now().UTC().Format("2006-01-02 15:04"))
}
