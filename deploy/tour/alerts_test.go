// The alerts name what is exported; each has a page, and tests that fail without it.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const (
	alertsFile  = "../prometheus/alerts.yml"
	testsFile   = "../prometheus/alerts_test.yml"
	pages       = "https://github.com/holdfast-go/holdfast/blob/main/"
	pagesFolder = "deploy/runbook/"
)

// rules is a file of rules, as Prometheus reads it.
type rules struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert,omitempty"`
	Record      string            `yaml:"record,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// ruleTests is a file of tests of rules.
type ruleTests struct {
	Tests []struct {
		Name        string `yaml:"name"`
		InputSeries []struct {
			Series string `yaml:"series"`
		} `yaml:"input_series"`
	} `yaml:"tests"`
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	redistest.Must(t, err)
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func readAlerts(t *testing.T) []rule {
	t.Helper()
	var file rules
	readYAML(t, alertsFile, &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no alerts", alertsFile)
	}
	return all
}

// Texts of alerts and legends of panels name labels that the result of their query has.
func TestTextsNameLabelsOfTheirQuery(t *testing.T) {
	check := func(what, text, query string) {
		for _, label := range inBraces.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(summedBy(query), label[1]) {
				t.Errorf("%s: %q, and the query does not sum by %s", what, text, label[1])
			}
		}
	}
	for _, alert := range readAlerts(t) {
		for _, text := range alert.Annotations {
			check(alert.Alert, text, alert.Expr)
		}
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			check("panel "+panel.Title, target.LegendFormat, target.Expr)
		}
	}
}

func TestEachAlertHasAPageOfItsOwn(t *testing.T) {
	index, err := os.ReadFile("../runbook/README.md")
	redistest.Must(t, err)
	named := make(map[string]bool)
	for _, alert := range readAlerts(t) {
		page, ours := strings.CutPrefix(alert.Annotations["runbook_url"], pages+pagesFolder)
		if !ours || named[page] {
			t.Errorf("%s: its page is %q", alert.Alert, alert.Annotations["runbook_url"])
			continue
		}
		named[page] = true
		text, err := os.ReadFile(filepath.Join("../runbook", page))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{"# " + alert.Alert + "\n", "\n## What it means\n", "\n## What to look at\n", "\n## What to do\n"} {
			if !strings.Contains("\n"+string(text), part) {
				t.Errorf("%s has no %q", page, strings.TrimSpace(part))
			}
		}
		row := fmt.Sprintf("| [%s](%s) | %s |", alert.Alert, page, alert.Labels["severity"])
		if !strings.Contains(string(index), row) {
			t.Errorf("the list of pages has no %q", row)
		}
	}
	all, err := filepath.Glob("../runbook/*.md")
	if err != nil || len(all) != len(named)+1 {
		t.Errorf("%d pages beside the list, and %d alerts, %v", len(all)-1, len(named), err)
	}
}

// promtool runs promtool in that folder.
func promtool(t *testing.T, folder string, args ...string) (output string, err error) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		redistest.Missing(t, "no promtool found; apt-get install prometheus")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPromtoolTakesTheAlerts(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"},
		{"check", "config", "prometheus.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		if out, err := promtool(t, "../prometheus", args...); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// The queries of the dashboard must be what Prometheus understands. It checks rules, so they become rules.
func TestPromtoolTakesTheQueriesOfTheDashboard(t *testing.T) {
	var recorded []rule
	for _, queries := range readDashboard(t).queries() {
		for _, query := range queries {
			recorded = append(recorded, rule{
				Record: fmt.Sprintf("query:%d", len(recorded)),
				Expr:   grafanaVariables.Replace(query),
			})
		}
	}
	folder := t.TempDir()
	writeYAML(t, filepath.Join(folder, "queries.yml"), rules{Groups: []ruleGroup{{Name: "dashboard", Rules: recorded}}})
	if out, err := promtool(t, folder, "check", "rules", "queries.yml"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func writeYAML(t *testing.T, file string, what any) {
	t.Helper()
	text, err := yaml.Marshal(what)
	if err == nil {
		err = os.WriteFile(file, text, 0o666)
	}
	redistest.Must(t, err)
}

// Each alert is taken away once. Then a test must fail.
func TestTheTestsOfAlertsFailWithoutThem(t *testing.T) {
	tests, err := os.ReadFile(testsFile)
	redistest.Must(t, err)
	for _, gone := range readAlerts(t) {
		t.Run(gone.Alert, func(t *testing.T) {
			t.Parallel()
			left := slices.DeleteFunc(readAlerts(t), func(r rule) bool { return r.Alert == gone.Alert })
			folder := t.TempDir()
			writeYAML(t, filepath.Join(folder, "alerts.yml"), rules{Groups: []ruleGroup{{Name: "left", Rules: left}}})
			redistest.Must(t, os.WriteFile(filepath.Join(folder, "alerts_test.yml"), tests, 0o666))
			if out, err := promtool(t, folder, "test", "rules", "alerts_test.yml"); err == nil {
				t.Errorf("every test passes without %s\n%s", gone.Alert, out)
			}
		})
	}
}
