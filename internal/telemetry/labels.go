// The attribute sets of the metrics, built once for each combination that occurs.

package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Attributes of metrics. Spans have them too, under the same keys.
const (
	keyKind      = attribute.Key("holdfast.kind")
	keyOutcome   = attribute.Key("holdfast.outcome")
	keyReason    = attribute.Key("holdfast.reason")
	keyReentrant = attribute.Key("holdfast.reentrant")
	keyErrorType = attribute.Key("error.type")
)

// keyGroup is an attribute of metrics alone, since spans have the name.
const keyGroup = attribute.Key("holdfast.group")

// labels is one combination of attributes. Zero fields are left out of the set.
type labels struct {
	kind      string
	group     Group // beside other bytes: they are hashed as one
	outcome   Outcome
	reentrant bool
	reason    string
	errorType string
}

// labels, with and ended return the labels of a measurement of that kind: no others; with an outcome;
// with the reason for the end of a hold, or of a waiter's sleep.
func (k Kind) labels() labels { return labels{kind: k.Name, group: k.Group} }
func (k Kind) with(outcome Outcome) labels {
	return labels{kind: k.Name, group: k.Group, outcome: outcome}
}
func (k Kind) ended(reason string) labels {
	return labels{kind: k.Name, group: k.Group, reason: reason}
}

// options is an attribute set in the form that the instruments take. The slices are kept whole,
// because a variadic call through an interface would allocate them each time.
type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func (l labels) options(g *groups, at server) options {
	kvs := append(make([]attribute.KeyValue, 0, 8), at.of(l.kind)...)
	if l.kind != "" {
		kvs = append(kvs, keyKind.String(l.kind))
	}
	if group := g.value(l.group); group != "" {
		kvs = append(kvs, keyGroup.String(group))
	}
	if l.outcome != 0 {
		kvs = append(kvs, keyOutcome.String(l.outcome.String()))
	}
	if l.reentrant {
		kvs = append(kvs, keyReentrant.Bool(true))
	}
	if l.reason != "" {
		kvs = append(kvs, keyReason.String(l.reason))
	}
	if l.errorType != "" {
		kvs = append(kvs, keyErrorType.String(l.errorType))
	}
	set := metric.WithAttributeSet(attribute.NewSet(kvs...))
	return options{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}

// optionCache maps labels to options. Its readers take no lock: the map is replaced, never
// written. After the first minutes of a process it no longer changes, because every field of
// labels has few values. A cache without known is empty.
type optionCache struct {
	groups *groups // that labels have the numbers of
	server server
	known  atomic.Pointer[map[labels]options]
	mu     sync.Mutex // held while the map is replaced
}

func (c *optionCache) get(l labels) options {
	if known := c.known.Load(); known != nil {
		if o, ok := (*known)[l]; ok {
			return o
		}
	}
	return c.add(l)
}

// has reports whether get was called with l before.
func (c *optionCache) has(l labels) bool {
	known := c.known.Load()
	if known == nil {
		return false
	}
	_, ok := (*known)[l]
	return ok
}

func (c *optionCache) add(l labels) options {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[labels]options)
	if known := c.known.Load(); known != nil {
		// Another caller may have added l since get looked.
		if o, ok := (*known)[l]; ok {
			return o
		}
		maps.Copy(next, *known)
	}
	o := l.options(c.groups, c.server)
	next[l] = o
	c.known.Store(&next)
	return o
}
