// What stands in an embedded server, as values that can be kept and put back.

package redistest

import (
	"maps"
	"slices"
	"time"
)

// Value is what is stored at a key. Only what Holdfast uses is kept: strings, hashes, sorted sets, sets and lists.
type Value struct {
	kind    string
	text    string
	hash    map[string]string
	scores  map[string]float64
	members []string
	end     time.Time // zero: it has no expiry
}

// Equal reports whether two values are the same. An end is known to within a millisecond or two.
func (v Value) Equal(other Value) bool {
	ends := v.end.Sub(other.end).Abs() <= 2*time.Millisecond && v.end.IsZero() == other.end.IsZero()
	return ends && v.kind == other.kind && v.text == other.text && maps.Equal(v.hash, other.hash) &&
		maps.Equal(v.scores, other.scores) && slices.Equal(v.members, other.members)
}

// Values returns what is in database 0. A key that comes or goes meanwhile may be there or not.
func (m *MiniServer) Values() map[string]Value {
	all := make(map[string]Value)
	for _, key := range m.Keys() {
		v := Value{kind: m.Type(key)}
		switch v.kind {
		case "string":
			v.text, _ = m.Get(key)
		case "hash":
			v.hash = make(map[string]string)
			fields, _ := m.HKeys(key)
			for _, f := range fields {
				v.hash[f] = m.HGet(key, f)
			}
		case "zset":
			scores, _ := m.SortedSet(key)
			v.scores = locked(m, func() map[string]float64 { return maps.Clone(scores) })
		case "set":
			v.members, _ = m.Members(key)
		case "list":
			members, _ := m.List(key)
			v.members = locked(m, func() []string { return slices.Clone(members) })
		default:
			continue
		}
		if ttl := m.TTL(key); ttl > 0 {
			v.end = time.Now().Add(ttl)
		}
		all[key] = v
	}
	return all
}

// locked returns what read returns while no command runs: miniredis hands out its own sorted sets and lists.
func locked[T any](m *MiniServer, read func() T) T {
	m.Lock()
	defer m.Unlock()
	return read()
}

// SetValues puts values in place of what is stored in database 0, except those that have ended by
// now.
func (m *MiniServer) SetValues(all map[string]Value, now time.Time) {
	m.FlushDB()
	for key, v := range all {
		if !v.end.IsZero() && !v.end.After(now) {
			continue
		}
		switch v.kind {
		case "string":
			_ = m.Set(key, v.text)
		case "hash":
			for f, value := range v.hash {
				m.HSet(key, f, value)
			}
		case "zset":
			for member, score := range v.scores {
				_, _ = m.ZAdd(key, score, member)
			}
		case "set":
			_, _ = m.SetAdd(key, v.members...)
		case "list":
			_, _ = m.Push(key, v.members...)
		}
		if !v.end.IsZero() {
			m.SetTTL(key, v.end.Sub(now))
		}
	}
}
