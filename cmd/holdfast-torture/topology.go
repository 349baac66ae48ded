// The topologies: the servers that the contenders use, and the faults of each.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// topology is a Redis made of processes.
type topology interface {
	addrs() []string // addresses to give to a client
	network() *network
	nodes() []*redistest.Proc
	masters() []*redistest.Proc // the masters that run now
	onlookers() []redis.UniversalClient

	// strike injects a fault of a class and returns when all is well again. It calls the blow's
	// usable when writes are possible again.
	strike(class string, b *blow)
}

// blow is one fault of a server while it lasts.
type blow struct {
	rand   *rand.Rand
	usable func() // must be called when writes are possible again, if they were not
}

// between returns a duration from least to most.
func (b *blow) between(least, most time.Duration) time.Duration {
	return least + time.Duration(b.rand.Int64N(int64(most-least)))
}

// loss is which acknowledged data a fault makes Redis forget.
type loss int

const (
	nothing      loss = iota
	unreplicated      // the data that no replica had
	everything
)

// The faults of servers, by topology, and the loss that each causes.
var (
	anyServer = map[string]loss{"scripts flushed": nothing, subscribersKilled: nothing}

	serverClasses = map[string]map[string]loss{
		"single":   {"server frozen": nothing, "server killed": nothing, "server emptied": everything},
		"sentinel": {"failover planned": unreplicated, "master killed": unreplicated, "master frozen": unreplicated, shutOut: unreplicated},
		"cluster":  {"failover planned": nothing, "master killed": unreplicated, "master frozen": unreplicated, "slot moved": nothing},
		"quorum":   {"server frozen": nothing, "server killed": nothing, "server emptied": nothing, othersEmptied: nothing},
	}
)

// othersEmptied is the fault that some servers of a quorum are killed and, once they are back with
// their data, FLUSHALL is run on as many others. A grant made in between has lost all but one of its
// servers then, and no server is out of reach: only the markers keep the next caller out.
const othersEmptied = "others emptied"

// shutOut is the fault that a master's replicas are cut off, and one of them is promoted. The new
// master knows nothing of what the old one granted in between.
const shutOut = "replicas shut out"

// replicasOf is how many replicas each master has. If fewer of them have to confirm a grant, a
// replica without the grant may be promoted: while a failover is under way, the former master
// and a replica that does not know yet go on confirming to each other.
var replicasOf = map[string]int{"sentinel": 2, "cluster": 1}

// durable makes a server keep all data that it has acknowledged when it is killed. With
// everysec it may lose two seconds of that, even if only the process is killed: while an fsync takes
// long, acknowledged data is not even written.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// aof is for servers whose replicas take over when the servers are killed.
var aof = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

func newTopology(t testing.TB, c config, ways []redistest.Way) topology {
	t.Helper()
	switch c.Topology {
	case "single":
		s := redistest.Server(t, durable...)
		return &servers{t: t, all: []*redistest.Proc{s}, net: newNetwork(t, ways, s), lease: c.Lease}
	case "quorum":
		var all []*redistest.Proc
		for range 5 {
			all = append(all, redistest.Server(t, durable...))
		}
		return &servers{t: t, all: all, net: newNetwork(t, ways, all...), lease: c.Lease}
	case "sentinel":
		s := redistest.Sentinel(t, aof...)
		return &sentinel{t: t, set: s, net: newNetwork(t, ways, append(s.Replicas(), s.Master())...)}
	case "cluster":
		s := redistest.Cluster(t, 3, 1, aof...)
		return &cluster{t: t, set: s, net: newNetwork(t, ways, s.Nodes()...), names: c.names()}
	}
	t.Fatalf("no topology is called %q", c.Topology)
	return nil
}

// servers is one server, or the servers of a quorum, which know nothing of each other.
type servers struct {
	t     testing.TB
	all   []*redistest.Proc
	net   *network
	lease time.Duration
}

func (s *servers) network() *network          { return s.net }
func (s *servers) nodes() []*redistest.Proc   { return s.all }
func (s *servers) masters() []*redistest.Proc { return s.all }

func (s *servers) addrs() []string {
	var addrs []string
	for _, p := range s.all {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

func (s *servers) onlookers() []redis.UniversalClient {
	var all []redis.UniversalClient
	for _, p := range s.all {
		all = append(all, p.Admin())
	}
	return all
}

// strike affects fewer than half of the servers, or the only one.
func (s *servers) strike(class string, b *blow) {
	order := b.rand.Perm(len(s.all))
	n := 1
	if few := (len(s.all) - 1) / 2; class == othersEmptied {
		n = few // with fewer, a majority would still have the grant
	} else if few > 0 {
		n += b.rand.IntN(few)
	}
	down := order[:n]
	for _, i := range down {
		if class == "server frozen" {
			s.all[i].Freeze()
		} else {
			s.all[i].Kill()
		}
	}
	time.Sleep(b.between(0, 3*s.lease/2))
	for _, i := range down {
		if class == "server frozen" {
			s.all[i].Thaw()
		} else {
			s.all[i].Restart(class != "server emptied")
		}
	}
	if class == othersEmptied {
		time.Sleep(b.between(0, 300*time.Millisecond)) // the contenders connect again
		for _, i := range order[n : 2*n] {
			s.all[i].Flush()
		}
	}
	b.usable()
	if len(s.all) > 1 && (class == "server emptied" || class == othersEmptied) {
		time.Sleep(s.lease + time.Second) // until then the quorum counts them as down
	}
}

// sentinel is a master with two replicas, watched by Sentinels.
type sentinel struct {
	t   testing.TB
	set *redistest.SentinelSet
	net *network
}

func (s *sentinel) network() *network          { return s.net }
func (s *sentinel) addrs() []string            { return s.set.SentinelAddrs() }
func (s *sentinel) nodes() []*redistest.Proc   { return s.set.Nodes() }
func (s *sentinel) masters() []*redistest.Proc { return []*redistest.Proc{s.set.Master()} }

func (s *sentinel) onlookers() []redis.UniversalClient {
	return []redis.UniversalClient{s.set.Client(s.t)}
}

func (s *sentinel) strike(class string, b *blow) {
	switch class {
	case "failover planned":
		s.set.Failover()
		b.usable()
	case "master killed":
		old := s.set.KillMaster()
		s.set.Master()
		b.usable()
		time.Sleep(b.between(0, time.Second))
		old.Restart(true)
	case "master frozen":
		old := s.set.FreezeMaster()
		s.set.Master()
		b.usable()
		time.Sleep(b.between(0, 2*time.Second))
		old.Thaw() // it takes itself for the master for some seconds
	case shutOut:
		old := s.set.Master()
		old.ShutOutFollowers()
		time.Sleep(b.between(0, 2*time.Second))
		s.set.Failover()
		b.usable()
		old.LetInFollowers()
	}
	s.set.Settle()
}

// cluster is three masters with a replica each.
type cluster struct {
	t     testing.TB
	set   *redistest.ClusterSet
	net   *network
	names int // of each kind
}

func (s *cluster) network() *network        { return s.net }
func (s *cluster) addrs() []string          { return s.set.Addrs() }
func (s *cluster) nodes() []*redistest.Proc { return s.set.Nodes() }

func (s *cluster) masters() []*redistest.Proc {
	var masters []*redistest.Proc
	for _, p := range s.set.Nodes() {
		info, err := p.Admin().Info(context.Background(), "replication").Result()
		if err == nil && strings.Contains(info, "role:master") {
			masters = append(masters, p)
		}
	}
	return masters
}

func (s *cluster) onlookers() []redis.UniversalClient {
	return []redis.UniversalClient{s.set.Client(s.t)}
}

func (s *cluster) strike(class string, b *blow) {
	kinds := kindsOf("cluster")
	key := fmt.Sprintf("%s-%d", kinds[b.rand.IntN(len(kinds))], b.rand.IntN(s.names))
	switch class {
	case "failover planned":
		s.set.Failover(key)
		b.usable()
	case "master killed":
		old := s.set.KillMasterOf(key)
		s.set.MasterOf(key)
		b.usable()
		time.Sleep(b.between(0, time.Second))
		old.Restart(true)
	case "master frozen":
		old := s.set.MasterOf(key)
		old.Freeze()
		s.set.MasterOf(key)
		b.usable()
		time.Sleep(b.between(0, 2*time.Second))
		old.Thaw()
	case "slot moved":
		if b.rand.IntN(2) == 0 { // RWMutex has the most keys in one slot
			key = fmt.Sprintf("rw-%d", b.rand.IntN(s.names))
		}
		s.move(key, b)
		return
	}
	s.set.Settle()
}

// move moves a slot. Half of the time it first moves up to three of the slot's keys one by one, with
// a pause after each, so that a lock of several keys is on two servers meanwhile.
func (s *cluster) move(key string, b *blow) {
	m := s.set.OpenSlot(key)
	if b.rand.IntN(2) == 0 {
		keys := m.Keys()
		b.rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for _, one := range keys[:min(len(keys), 3)] {
			m.MoveKeys(one)
			time.Sleep(b.between(0, 100*time.Millisecond))
		}
	}
	m.Finish()
}
