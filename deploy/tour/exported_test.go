// What the tour exports: every metric, its labels and their values, as Prometheus sees them.

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/holdfast-go/holdfast/examples/tour/scenes"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

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
	if err != nil {
		t.Fatal(err)
	}
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

// of returns the metrics of Holdfast itself.
func (e exported) of(prefix string) []string {
	var names []string
	for name := range e {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}
