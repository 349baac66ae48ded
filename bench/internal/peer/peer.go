// Package peer has the locks that are compared: Holdfast, and the libraries that a Go program might
// use in its place, each behind the same interface.
package peer

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
)

// Peer is one library, with its settings.
type Peer struct {
	Name     string
	Settings string   // in words; "" for the library's defaults
	Module   string   // the report gives the version of this module
	Sends    []string // the commands that it sends besides scripts
	Apart    bool     // it has a server of its own, so that Redis does nothing for it

	// Open prepares the locks of the peer for one process, Elect its elections, and Once its results that
	// are made once. Each is nil if the peer has none.
	Open  func(addr string) (Process, error)
	Elect func(ctx context.Context, addr string) (Process, error)
	Once  func(addr string) Once
}

// Process is a peer in one process: its connections, and whatever else its locks share.
type Process interface {
	// Lock returns the lock of that name for one goroutine.
	Lock(name string) Lock
	Close()
}

// Lock is the lock of one name.
type Lock interface {
	// Pair acquires the lock, and waits for it until ctx ends. Then it does the work under the
	// lock, if there is any, and releases the lock.
	Pair(ctx context.Context, work func()) error
}

// All returns the peers, Holdfast first.
func All() []Peer {
	return []Peer{
		{Name: Holdfast, Module: holdfastModule, Open: openHoldfast(), Elect: electHoldfast, Once: onceHoldfast},
		{Name: HoldfastWithoutCohort, Settings: "no hand-over within a process", Module: holdfastModule,
			Open: openHoldfast(withoutCohort())},
		{Name: Redsync, Module: redsyncModule, Sends: []string{"set"}, Open: openRedsync()},
		{Name: RedsyncTuned, Settings: "polls every 5 to 15 ms, without end; " + largePool, Module: redsyncModule,
			Sends: []string{"set"}, Open: openRedsync(tunedRedsync()...)},
		{Name: Redislock, Settings: "polls every 100 ms, as in its example", Module: redislockModule,
			Open: openRedislock(linear(100), 0)},
		{Name: RedislockLinear, Settings: "polls every 10 ms; " + largePool, Module: redislockModule,
			Open: openRedislock(linear(10), poolSize)},
		{Name: RedislockExponential, Settings: exponentially, Module: redislockModule,
			Open: openRedislock(exponential(16, 512), poolSize)},
		{Name: Rueidislock, Settings: "", Module: rueidisModule, Open: openRueidislock(false)},
		{Name: RueidislockTuned, Settings: tunedRueidis, Module: rueidisModule, Open: openRueidislock(true)},
		{Name: RedislockLocal, Settings: localMutex + "; " + exponentially, Module: redislockModule,
			Open: behindMutex(openRedislock(exponential(16, 512), poolSize))},
		{Name: RueidislockLocal, Settings: localMutex + "; " + tunedRueidis, Module: rueidisModule,
			Open: behindMutex(openRueidislock(true))},
		{Name: Etcd, Settings: "concurrency.Election; one server, which does not wait for its disk", Module: etcdModule,
			Apart: true, Elect: electEtcd},
		{Name: RedsyncElection, Settings: "a lock that is asked for and extended as often as client-go does, in proportion to the lease",
			Module: redsyncModule, Sends: []string{"set"}, Elect: electRedsync},
		{Name: RedsyncOnce, Settings: "a singleflight.Group in each process, a lock and a key", Module: redsyncModule,
			Sends: []string{"set", "get"}, Once: onceRedsync()},
		{Name: RedsyncOnceTuned, Settings: "the same; polls every 5 to 15 ms", Module: redsyncModule,
			Sends: []string{"set", "get"}, Once: onceRedsync(tunedRedsync()...)},
	}
}

// The results are stored and found by these names.
const (
	Holdfast              = "holdfast"
	HoldfastWithoutCohort = "holdfast without cohort"
	Redsync               = "redsync"
	RedsyncTuned          = "redsync tuned"
	Redislock             = "redislock"
	RedislockLinear       = "redislock 10 ms"
	RedislockExponential  = "redislock exponential"
	Rueidislock           = "rueidislock"
	RueidislockTuned      = "rueidislock tuned"
	RedislockLocal        = "redislock exponential, local mutex"
	RueidislockLocal      = "rueidislock tuned, local mutex"
	Etcd                  = "etcd"
	RedsyncElection       = "redsync as client-go"
	RedsyncOnce           = "singleflight and redsync"
	RedsyncOnceTuned      = "singleflight and redsync tuned"
)

// These words stand in the settings of more than one peer.
const (
	localMutex    = "behind a sync.Mutex in each process"
	exponentially = "polls after 16 ms, doubling to 512 ms; " + largePool
	tunedRueidis  = "KeyMajority 1, NoLoopTracking"
)

// Without returns the peers that are compared in every work with the mutex, each with its defaults
// and with the best settings that we know of, except those named. Of redislock's two better
// settings, polling every 10 ms is for one waiter, and the exponential backoff for many. Where nobody
// contends they are the same.
func Without(names ...string) []string {
	return slices.DeleteFunc([]string{Redsync, RedsyncTuned, Redislock, RedislockLinear, RedislockExponential,
		Rueidislock, RueidislockTuned}, func(name string) bool { return slices.Contains(names, name) })
}

const (
	holdfastModule  = "github.com/holdfast-go/holdfast"
	redsyncModule   = "github.com/go-redsync/redsync/v4"
	redislockModule = "github.com/bsm/redislock"
	rueidisModule   = "github.com/redis/rueidis"
	etcdModule      = "go.etcd.io/etcd/client/v3"
)

// Find returns the peer of that name.
func Find(name string) (Peer, error) {
	for _, p := range All() {
		if p.Name == name {
			return p, nil
		}
	}
	return Peer{}, fmt.Errorf("no peer is called %q", name)
}

// Version returns the version of the peer's module in this program.
func (p Peer) Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == p.Module {
			if m.Replace != nil {
				return "this checkout"
			}
			return m.Version
		}
	}
	return ""
}
