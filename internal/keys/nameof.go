// From a record of Holdfast's own back to the name it belongs to.

package keys

import "strings"

// RecordsPattern returns the pattern, for SCAN, of the keys that NameOf takes. Some others match it too.
func (s Space) RecordsPattern() string { return s.Pattern("holdfast_[ob]*") }

// SlotsPattern returns the pattern, for SCAN, of the keys of slots that NameOf takes. Others match it too.
func (s Space) SlotsPattern() string { return s.Pattern(slotsPrefix + ":*") }

// LimitsPattern returns the pattern, for SCAN, of the keys of limits and of pauses (holdfast_limit:, holdfast_pause:), which
// NameOf takes too: one way over all strings for both.
func (s Space) LimitsPattern() string { return s.Pattern("holdfast_[lp][ia][mu][is][te]:*") }

// IsPause reports whether NameOf takes key as that of a pause.
func (s Space) IsPause(key string) bool { return strings.HasPrefix(key, string(s)+pausePrefix+":") }

// ShardsPattern returns the pattern, for SCAN, of the members of shards, which NameOf takes too.
func (s Space) ShardsPattern() string { return s.Pattern(shardsPrefix + ":*") }

// NameOf returns the name at which a Once, a barrier, slots, a limit, shards or a pause is whose record is key, and
// false if key is no such record. Other kinds are at the key of their name.
func (s Space) NameOf(key string) (name string, ok bool) {
	for _, prefix := range [...]string{oncePrefix, barrierPrefix, slotsPrefix, limitPrefix, shardsPrefix, pausePrefix} {
		rest, found := strings.CutPrefix(key, string(s)+prefix+":{")
		if !found {
			continue
		}
		if name, plain := strings.CutSuffix(rest, "}"); plain && !braced(name) && name != "" {
			return name, true
		}
		// {N}: and a name with braces of its own
		_, name, tagged := strings.Cut(rest, "}:")
		return name, tagged && braced(name) && s.own(prefix, name) == key
	}
	return "", false
}
