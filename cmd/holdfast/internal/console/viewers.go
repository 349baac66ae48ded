// Viewers: how many streams there are at a time, and which one ends for another.

package console

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// What each viewer looks at costs memory.
const (
	atOnce     = 100 // at most, viewers of all addresses together
	perAddress = 50  // at most, viewers of one address; behind a proxy, all have that of the proxy
)

// viewers are all who have a stream. A new one always gets in: where there is no room, an older one ends for it, of
// those who have most. So nobody can keep others out by opening very many.
type viewers struct {
	mu  sync.Mutex
	all []*viewer // the oldest first
}

// viewer has one stream.
type viewer struct {
	from string
	gone chan struct{} // closed when another one needs its room
}

// enter adds a viewer from an address.
func (v *viewers) enter(from string) *viewer {
	v.mu.Lock()
	defer v.mu.Unlock()
	count := make(map[string]int)
	for _, one := range v.all {
		count[one.from]++
	}
	switch {
	case count[from] >= perAddress:
		v.end(from)
	case len(v.all) >= atOnce:
		most := from
		for _, one := range v.all {
			if count[one.from] > count[most] {
				most = one.from
			}
		}
		v.end(most)
	}
	me := &viewer{from, make(chan struct{})}
	v.all = append(v.all, me)
	return me
}

// end ends the oldest stream of an address.
func (v *viewers) end(from string) {
	if n := slices.IndexFunc(v.all, func(one *viewer) bool { return one.from == from }); n >= 0 {
		close(v.all[n].gone)
		v.all = slices.Delete(v.all, n, n+1)
	}
}

// leave takes a viewer away.
func (v *viewers) leave(me *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = slices.DeleteFunc(v.all, func(one *viewer) bool { return one == me })
}

// number returns how many viewers there are.
func (v *viewers) number() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.all)
}

// addressOf returns where a request comes from, for bounds: of IPv6 the network, since one host has all of it.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
