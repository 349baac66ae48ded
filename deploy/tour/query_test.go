// What the tour exports, as Prometheus sees it, and a check of queries: what they name must be exported.

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	dto "github.com/prometheus/client_model/go"

	"github.com/holdfast-go/holdfast/examples/tour/scenes"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// check returns a sentence for each metric, label and value that the query names and that is not
// exported.
func (e exported) check(query string) []string {
	parsed, err := metricsql.Parse(grafanaVariables.Replace(query))
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, filters := range selectors(parsed) {
		problems = append(problems, e.checkSelector(filters)...)
	}
	for _, sum := range sums(parsed) { // each metric in it must have the labels by which it sums
		for _, filters := range selectors(sum) {
			for _, label := range sum.Modifier.Args {
				if _, there := e[metricOf(filters)][label]; !there {
					problems = append(problems, fmt.Sprintf("%s has no label %q to sum by", metricOf(filters), label))
				}
			}
		}
	}
	return problems
}

// selectors returns what selects series in a query.
func selectors(query metricsql.Expr) (all [][]metricsql.LabelFilter) {
	metricsql.VisitAll(query, func(expr metricsql.Expr) {
		if metric, ok := expr.(*metricsql.MetricExpr); ok {
			all = append(all, metric.LabelFilterss...)
		}
	})
	return all
}

// sums returns what sums up in a query.
func sums(query metricsql.Expr) (all []*metricsql.AggrFuncExpr) {
	metricsql.VisitAll(query, func(expr metricsql.Expr) {
		if sum, ok := expr.(*metricsql.AggrFuncExpr); ok {
			all = append(all, sum)
		}
	})
	return all
}

// grafanaVariables are what Grafana puts into a query before it sends it.
var grafanaVariables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", ".*", "$kind", ".*")

// checkSelector checks one selector: the name of the metric, and then its labels and their values.
func (e exported) checkSelector(filters []metricsql.LabelFilter) []string {
	name := metricOf(filters)
	if name == "ALERTS" { // Prometheus's own
		return nil
	}
	labels, there := e[name]
	if !there {
		return []string{fmt.Sprintf("%q is not exported", name)}
	}
	var problems []string
	for _, f := range filters {
		if f.Label == "__name__" {
			continue
		}
		values, there := labels[f.Label]
		if !there {
			problems = append(problems, fmt.Sprintf("%s has no label %q", name, f.Label))
			continue
		}
		if values == nil || f.Value == "" {
			continue // anything may stand there, or nothing
		}
		if f.Label == "holdfast_kind" {
			values = e.kinds()
		}
		for _, want := range alternatives(f) {
			if !matches(values, want) {
				problems = append(problems, fmt.Sprintf("%s has no %s that is %q", name, f.Label, want))
			}
		}
	}
	return problems
}

// kinds returns the kinds that any metric has: not every kind comes to wait in the tour, or to be lost.
func (e exported) kinds() map[string]bool {
	all := make(map[string]bool)
	for _, labels := range e {
		maps.Copy(all, labels["holdfast_kind"])
	}
	return all
}

func metricOf(filters []metricsql.LabelFilter) string {
	for _, f := range filters {
		if f.Label == "__name__" {
			return f.Value
		}
	}
	return ""
}

// alternatives returns the regular expressions that the filter is made of, each for one value.
func alternatives(f metricsql.LabelFilter) []string {
	if !f.IsRegexp {
		return []string{regexp.QuoteMeta(f.Value)}
	}
	return strings.Split(f.Value, "|")
}

func matches(values map[string]bool, pattern string) bool {
	want, err := regexp.Compile("^(?:" + pattern + ")$")
	for value := range values {
		if err == nil && want.MatchString(value) {
			return true
		}
	}
	return false
}

// summedBy returns the labels that the result of a query may have.
func summedBy(query string) (labels []string) {
	parsed, err := metricsql.Parse(grafanaVariables.Replace(query))
	if err != nil {
		return nil
	}
	for _, sum := range sums(parsed) {
		labels = append(labels, sum.Modifier.Args...)
	}
	return labels
}

// asked returns the queries of the dashboard, and of the alerts and their tests, by who asks.
func asked(t *testing.T) map[string][]string {
	t.Helper()
	d := readDashboard(t)
	all := d.queries()
	for _, variable := range d.Templating.List {
		if variable.Definition != "" {
			all["variable "+variable.Name] = []string{labelValues.ReplaceAllString(variable.Definition, "sum($1) by ($2)")}
		}
	}
	for _, alert := range readAlerts(t) {
		all["alert "+alert.Alert] = []string{alert.Expr}
	}
	var file ruleTests
	readYAML(t, testsFile, &file)
	for _, test := range file.Tests {
		for _, input := range test.InputSeries {
			all["test "+test.Name] = append(all["test "+test.Name], input.Series)
		}
	}
	return all
}

func TestWhatIsAskedForIsExported(t *testing.T) {
	e := toured(t)
	for who, queries := range asked(t) {
		for _, query := range queries {
			for _, problem := range e.check(query) {
				t.Errorf("%s: %s", who, problem)
			}
		}
	}
}

// Every name in these queries is misspelled once: the check finds each.
func TestTheCheckFindsEachNameOnceItIsMisspelled(t *testing.T) {
	e := toured(t)
	ours := regexp.MustCompile(`(?:holdfast|error)_\w+`)
	for _, queries := range asked(t) {
		for _, query := range queries {
			for _, at := range ours.FindAllStringIndex(query, -1) {
				if misspelled := query[:at[1]] + "s" + query[at[1]:]; len(e.check(misspelled)) == 0 {
					t.Errorf("nothing is wrong with %s", misspelled)
				}
			}
		}
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }

// exported has, for each metric, the values of each of its labels.
type exported map[string]map[string]map[string]bool

// played plays every scene of the tour, once for all tests, and returns what it exports. The scenes
// play side by side, so some of their checks of time may not hold. That is for the tour's own test.
var played = sync.OnceValues(func() (exported, error) {
	registry, options, err := metrics()
	if err != nil {
		return nil, err
	}
	var playing sync.WaitGroup
	for i := range scenes.Titles() {
		playing.Go(func() {
			_ = scenes.Run(context.Background(), io.Discard, "", []string{"-scene", fmt.Sprint(i + 1)}, options...)
		})
	}
	playing.Wait()
	families, err := registry.Gather()
	if err != nil {
		return nil, err
	}
	e := make(exported)
	for _, family := range families {
		e.add(family)
	}
	return e, nil
})

// toured returns what the tour exports.
func toured(t *testing.T) exported {
	t.Helper()
	redistest.RealTime(t)
	e, err := played()
	redistest.Must(t, err)
	return e
}

// add adds the series of a metric, and the labels that Prometheus adds to them.
func (e exported) add(family *dto.MetricFamily) {
	names := []string{family.GetName()}
	if family.GetType() == dto.MetricType_HISTOGRAM {
		names = []string{names[0] + "_bucket", names[0] + "_sum", names[0] + "_count"}
	}
	for _, name := range names {
		labels := map[string]map[string]bool{"job": nil, "instance": nil}
		if strings.HasSuffix(name, "_bucket") {
			labels["le"] = nil
		}
		for _, m := range family.GetMetric() {
			for _, pair := range m.GetLabel() {
				if labels[pair.GetName()] == nil {
					labels[pair.GetName()] = make(map[string]bool)
				}
				labels[pair.GetName()][pair.GetValue()] = true
			}
		}
		e[name] = labels
	}
}
