// Package rights lists what a Redis user must be allowed to do for each kind of synchronizer,
// and makes the calls that try it out.
package rights

import (
	"embed"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/keys"
)

//go:embed lua
var folder embed.FS

var lua = conn.Texts(folder)

var script = conn.NewScript("rights/probe", lua("probe"), conn.Always, conn.Mixed)

// Need is the keys, channels and commands that one kind needs for one name.
type Need struct {
	Kind     string   // "fairmutex", as in spans
	Keys     []string // the first is the name itself
	Channels []string
	Commands []string
}

// The commands that the scripts of each kind run.
var (
	ofQueries = strings.Fields("zcount zrank zrangebyscore") // of a FairMutex, beyond those of a Mutex
	ofRW      = strings.Fields("get set del exists pttl pexpire hset hget hdel hlen hexists hgetall hscan " +
		"zadd zrem zscore zrange zrangebyscore")
	ofSemaphores = strings.Fields("get incrby decrby pexpire hset hget hdel")
	ofPermits    = append(strings.Fields("pttl zadd zrem zcard zcount zscore zrange zremrangebyrank"), ofSemaphores...)
	ofLeaders    = strings.Fields("get set del pttl pexpire hset hsetnx hget hmget hdel hkeys hlen hexists hgetall " +
		"zadd zrem zcard zscore zrange zrangebyscore zrevrangebyscore")
	ofLatches = strings.Fields("get set del decr pttl pexpire pexpireat hset hget hdel " +
		"zadd zrem zrevrange zrangebyscore zremrangebyrank")
	ofBarriers = strings.Fields("del pttl pexpire hset hget hmget hdel zadd zrem zcount zscore zrange zrangebyscore")
	ofSlots    = strings.Fields("get set pttl pexpire zadd zrem zcount zscore zrange zrangebyscore")
	ofShards   = strings.Fields("set del pttl pexpire hset hget hdel hexists hgetall zadd zrem zcard zscore zrangebyscore")
	ofOnce     = strings.Fields("get set del pttl pexpire hset hget hmget hdel hexists")
	ofLimits   = strings.Fields("get set pexpire")
	ofTicks    = strings.Fields("get set del")
	ofQuorums  = strings.Fields("get set pttl")
	ofClients  = strings.Fields("del pexpire hset hget") // that say who they are
	ofForced   = strings.Fields("get set")               // that note who has released by force
)

// someKey is a key of a Once. The rights to others are the same, as are those to the ticks of all
// times.
const someKey = "key"

// Needs returns what each kind needs for that name, as it is in Redis in that Space, in a Client with
// the id client. It leaves out the kinds that cannot have such a name, and the Mutex, which
// rlock.Probe tries out.
func Needs(space keys.Space, name, client string, sharded bool) []Need {
	return slices.Concat(ofLocks(space, name, client), ofNumbers(space, name, client, sharded), ofWork(space, name, client))
}

// ofLocks is Needs for what one holder has, or several readers.
func ofLocks(space keys.Space, name, client string) (all []Need) {
	if at, err := space.ForFairLock(name); err == nil {
		all = append(all, Need{"fairmutex", []string{name, at.Token, at.Queue, at.Alive},
			[]string{at.GrantTo(client)}, ofQueries})
		all = append(all, Need{"quorum", []string{space.QuorumTurns(name)}, nil, ofQuorums}) // beyond those of a Mutex, and the marker
	}
	if at, err := space.ForRW(name); err == nil {
		all = append(all, Need{"rwlock", []string{name, at.Token, at.Readers, at.Writers, at.Waiting, at.Timeouts + client + ":1:rwlock_timeout:1"},
			[]string{at.Channel}, ofRW})
	}
	return all
}

// ofNumbers is Needs for what is counted, and for what has several holders.
func ofNumbers(space keys.Space, name, client string, sharded bool) (all []Need) {
	if at, err := space.ForSemaphore(name); err == nil {
		all = append(all, Need{"semaphore", []string{name, at.All, at.Calls + ":" + client},
			[]string{at.Channel}, ofSemaphores})
	}
	if at, err := space.ForPermits(name); err == nil {
		all = append(all, Need{"permits", []string{name, at.Taken, at.Calls + ":" + client},
			[]string{at.Channel}, ofPermits})
	}
	if at, err := space.ForLatch(name); err == nil {
		channel := at.Channel
		if sharded {
			channel = at.Sharded
		}
		all = append(all, Need{"latch", []string{name, at.Generations, at.Calls + ":" + client},
			[]string{channel}, ofLatches})
	}
	if at, err := space.ForBarrier(name); err == nil {
		all = append(all, Need{"barrier", []string{at.Record, at.Places}, []string{at.Channel}, ofBarriers})
	}
	if at, err := space.ForSlots(name); err == nil {
		all = append(all, Need{"slots", []string{at.Taken, at.Token, at.Waiting, at.Alive}, []string{at.Channel}, ofSlots})
	}
	if at, err := space.ForLimit(name); err == nil {
		all = append(all, Need{"limiter", []string{at.Key}, []string{at.Channel}, ofLimits})
	}
	return all
}

// ofWork is Needs for work that one does for all.
func ofWork(space keys.Space, name, client string) (all []Need) {
	if at, err := space.ForOnce(name, someKey); err == nil {
		tick, _ := space.ForTick(name, time.Unix(0, 0)) // it takes the names that ForOnce takes
		all = append(all, Need{"once", []string{at.Record, at.Token}, []string{at.Channel}, ofOnce},
			Need{"once", []string{tick, space.PauseAt(name)}, nil, ofTicks}) // in another slot of a cluster
	}
	if at, err := space.ForShards(name); err == nil {
		all = append(all, Need{"shards", []string{at.Members, at.Table, at.Token}, []string{at.Channel}, ofShards})
	}
	if at, err := space.ForLeader(name); err == nil {
		all = append(all, Need{"leader", []string{name, at.Token, at.Queue, at.Alive, at.Open, at.Record, at.Names, space.PauseAt(name)},
			[]string{at.Channel, at.Changes, at.GrantTo(client)}, ofLeaders})
	}
	return all
}

// OfIdentity returns what a Client with that id needs to say who it is.
func OfIdentity(space keys.Space, client string) Need {
	return Need{"identity", []string{space.ForClient(client)}, nil, ofClients}
}

// OfForced returns what it takes to note who has released the thing of that name by force.
func OfForced(space keys.Space, name string) (Need, error) {
	key, err := space.ForForced(name)
	return Need{"release", []string{key}, nil, ofForced}, err
}

// Probe returns the call that tries out the keys and the commands. No program may use the name:
// the call writes to it. If the user may not use one of the keys, the call fails.
func (n Need) Probe() *conn.Call {
	args := make([]any, len(n.Commands))
	for i, command := range n.Commands {
		args[i] = command
	}
	return &conn.Call{Script: script, Keys: n.Keys, Args: args}
}

// Refused returns the commands that Redis refused in an answered call of Probe.
func Refused(call *conn.Call) []string { return strings.Fields(call.ResultText()) }
