// The dashboard asks for what is exported, and for all of it.

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const dashboardFile = "../grafana/dashboards/holdfast.json"

// dashboard is what the tests read of a dashboard.
type dashboard struct {
	Panels []struct {
		Title   string
		Type    string
		Targets []struct{ Expr, LegendFormat string }
	}
	Annotations struct {
		List []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	redistest.Must(t, err)
	var d dashboard
	redistest.Must(t, json.Unmarshal(text, &d))
	return d
}

// queries returns what the panels ask, by panel.
func (d dashboard) queries() map[string][]string {
	all := make(map[string][]string)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all["panel "+panel.Title] = append(all["panel "+panel.Title], target.Expr)
		}
	}
	return all
}

// inBraces is a label in a legend, or in a text of an alert.
var inBraces = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)

// labelValues is what a variable asks for, in words that only Grafana has: the values of a label of a metric.
var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// A metric that no panel shows is one that its operators do not know of.
func TestTheDashboardShowsEveryMetric(t *testing.T) {
	e, d := toured(t), readDashboard(t)
	var all strings.Builder
	for _, queries := range d.queries() {
		all.WriteString(strings.Join(queries, "\n"))
	}
	for name := range e {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "holdfast_") && !strings.Contains(all.String(), base) {
			t.Errorf("no panel shows %s", base)
		}
	}
}

func TestGrafanaReadsTheDashboardFromWhereItIsMounted(t *testing.T) {
	var provisioned struct {
		Providers []struct {
			Options struct{ Path string }
		}
	}
	readYAML(t, "../grafana/provisioning/dashboards/holdfast.yml", &provisioned)
	mounted := readCompose(t).mounts(t, "grafana")
	for _, provider := range provisioned.Providers {
		folder, there := mounted[provider.Options.Path]
		if !there {
			t.Fatalf("nothing is mounted at %s", provider.Options.Path)
		}
		if found, _ := filepath.Glob(filepath.Join(folder, "*.json")); len(found) == 0 {
			t.Errorf("no dashboard in %s", folder)
		}
	}
}
