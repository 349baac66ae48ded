package keys

import "testing"

func TestNameOf(t *testing.T) {
	const s = Space("")
	for _, name := range []string{"x", "charge:order 7", "{user7}:cart", "a}b", "a{", "{}x", "}:{", "{12}:{x}", "日本"} {
		for _, key := range []string{s.OnceRecordAt(name), s.own(barrierPrefix, name), s.own(limitPrefix, name), s.own(shardsPrefix, name)} {
			if got, ok := s.NameOf(key); !ok || got != name {
				t.Errorf("%q: %q, %v; want %q", key, got, ok, name)
			}
		}
	}
	for _, key := range []string{"x", "holdfast_once", "holdfast_once:", "holdfast_once:{}", "holdfast_once:{x", "holdfast_once:{x}y",
		"holdfast_once_token:{x}", "holdfast_barrier_places:{x}", "holdfast_once:{1}:{x}", "holdfast_leader:{x}"} {
		if got, ok := s.NameOf(key); ok {
			t.Errorf("%q is taken for the record of %q", key, got)
		}
	}
}
