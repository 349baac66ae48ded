// Check: which properties of a Redis void the promises.

package holdfast

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/quorum"
)

// Finding is one problem that Check has found on a Redis server. The problem breaks or endangers a promise
// of Holdfast.
type Finding struct {
	Server  string // the server's address
	Problem Problem
	// Kind is set if Problem is Rights. It names the kind of synchronizer for which the Redis user lacks a
	// right, as holdfast.kind does in spans: "mutex", "fairmutex", "rwlock", "semaphore", "permits",
	// "slots", "latch", "barrier", "limiter", "shards", "once", "leader" or "quorum". It is "identity" if
	// WithIdentity lacks a right. It is "" if Check itself lacks a right, or if Replicas lacks the right to
	// use WAIT. A program that does not use a kind can ignore the findings of that Kind. FairMutex, Striped,
	// Leader and Quorum also need what a "mutex" needs.
	Kind   string
	Detail string // a description for people
}

// String returns the finding as one line.
func (f Finding) String() string { return f.Server + ": " + string(f.Problem) + ": " + f.Detail }

// Problem is the kind of a Finding.
type Problem string

// The problems that Check looks for.
const (
	// Eviction: if the memory of Redis is full, Redis may delete a lock that is held. Then two callers may
	// hold the lock.
	Eviction Problem = "eviction"
	// Persistence: Redis does not keep its data safely on disk. If it restarts, it forgets locks that are
	// held. Then two callers may hold the same lock.
	Persistence Problem = "persistence"
	// Replication: if the master fails before a grant has reached the replica that takes over, the grant is
	// lost. Then two callers may hold the same lock.
	Replication Problem = "replication"
	// Rights: the Redis user lacks a right that Holdfast needs, or the server lacks a command, for example
	// because the command was renamed or disabled.
	Rights Problem = "rights"
	// Servers: this server belongs to a Quorum of one server, or of an even number of servers. One server
	// survives no failure. Four servers survive only one failure, as three do.
	Servers Problem = "servers"
	// Connections: at least 80 % of the connections that the server allows (maxclients) are in use. At the
	// limit the server refuses new connections. Then a call that needs a new connection waits until its
	// context ends, or returns ErrUnavailable.
	Connections Problem = "connections"
)

// Check asks every master of the Client's Redis about everything that could break the promises in
// docs/guarantees.md: an eviction policy, missing persistence, asynchronous replication, missing rights,
// and a Quorum of one server or of an even number of servers. Check also reports a server that is near its
// limit of connections. If the Client waits for replicas, Check also reports that too few replicas are
// connected, or that the Redis user may not use WAIT. If there is nothing to report, Check returns no
// findings. If Check itself fails, it returns the error and the findings that it has made before. Those
// findings may explain the error, for example if a server is at its limit of connections.
//
// Which rights are needed depends on the names in use and on the kinds of synchronizer. So Check makes a
// new name from each of names, or from "holdfast" if names is empty: the new name begins with the given
// one. Check locks and releases a lock of that new name, and tries the commands, keys and channels that
// every other kind would use there. The keys that this leaves in Redis expire after two seconds. If a kind
// lacks a right, Check returns a finding of that Kind.
//
// Check learns of a Quorum from a marker key: the first Lock of the Quorum writes the marker on each
// server. Before that first Lock, Check reports nothing about the Quorum. If servers were added to the
// Quorum or removed from it after that Lock, the finding is about the earlier set of servers.
//
// Check is meant for the start of a program, and for operators.
func (c *Client) Check(ctx context.Context, names ...string) ([]Finding, error) {
	if err := c.engine.Broken(); err != nil {
		return nil, errs.Wrap("check", err)
	}
	if len(names) == 0 {
		names = []string{"holdfast"}
	}
	var findings []Finding
	servers, err := c.engine.Conn.Masters(ctx)
	if err != nil {
		return nil, errs.Wrap("check", err)
	}
	for _, server := range servers {
		found, err := c.checkServer(ctx, server)
		if err != nil {
			return findings, errs.Wrap("check "+server, err)
		}
		findings = append(findings, found...)
	}
	findings = append(findings, c.checkQuorum(ctx, servers)...)
	for _, name := range names {
		found, err := c.checkRights(ctx, name)
		findings = append(findings, found...)
		if err != nil {
			return findings, errs.Wrap("check rights on "+errs.Quote(name), err)
		}
	}
	return append(findings, c.checkIdentity(ctx)...), nil
}

// checkQuorum reads the marker of a quorum, if there is one, and finds out how many servers the
// quorum has. checkRights finds out whether the user may read the marker.
func (c *Client) checkQuorum(ctx context.Context, servers []string) []Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	n, err := quorum.ProbeMarker(ctx, c.engine)
	if err != nil || n == 0 || n%2 == 1 && n > 1 || len(servers) != 1 {
		return nil
	}
	detail := fmt.Sprintf("a quorum of %d servers outlives the failure of %d, as one of %d does", n, (n-1)/2, n-1)
	if n == 1 {
		detail = "a quorum of one server outlives no failure"
	}
	return []Finding{{Server: servers[0], Problem: Servers, Kind: "quorum", Detail: detail}}
}

// checkServer reads from INFO how one server is set up. A user without CONFIG may run INFO.
func (c *Client) checkServer(ctx context.Context, server string) ([]Finding, error) {
	rdb := c.engine.Conn.DialAtOnce(server)
	defer func() { _ = rdb.Close() }()
	text, err := rdb.Info(ctx).Result()
	if denied(err) {
		return []Finding{{Server: server, Problem: Rights, Detail: "INFO is refused, so memory, persistence, replication and connections are not known: " + conn.Typed(err).Error()}}, nil
	}
	if err != nil {
		return nil, conn.Typed(err)
	}
	info := parseInfo(text)
	return append(readInfo(server, info), checkReplicas(ctx, rdb, server, info, c.common.Replicas)...), nil
}

// checkReplicas finds the reasons for which a grant cannot be acknowledged by as many replicas
// as the Client waits for: too few replicas, or no right to use WAIT.
func checkReplicas(ctx context.Context, rdb *redis.Client, server string, info map[string]string, want int) []Finding {
	if want == 0 || info["role"] == "slave" {
		return nil
	}
	var findings []Finding
	if n, err := strconv.Atoi(info["connected_slaves"]); err == nil && n < want {
		findings = append(findings, Finding{Server: server, Problem: Replication,
			Detail: fmt.Sprintf("%d replicas are connected, and the Client waits for %d: nothing is granted", n, want)})
	}
	if err := rdb.Wait(ctx, 0, time.Millisecond).Err(); denied(err) {
		findings = append(findings, Finding{Server: server, Problem: Rights,
			Detail: "WAIT is refused, which Replicas needs: " + conn.Typed(err).Error()})
	}
	return findings
}

// readInfo finds the problems that the fields of INFO show.
func readInfo(server string, info map[string]string) []Finding {
	var findings []Finding
	add := func(p Problem, format string, args ...any) {
		findings = append(findings, Finding{Server: server, Problem: p, Detail: fmt.Sprintf(format, args...)})
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		add(Eviction, "maxmemory-policy is %s: want noeviction", policy)
	}
	if info["aof_enabled"] == "0" {
		add(Persistence, "appendonly is off: locks are forgotten at a restart")
	}
	if info["role"] == "slave" {
		add(Replication, "this server is a replica")
	} else if n := info["connected_slaves"]; n != "" && n != "0" {
		add(Replication, "%s replicas follow asynchronously", n)
	}
	if used, limit := connections(info); limit > 0 && 100*used >= nearLimit*limit {
		add(Connections, "%d of %d connections (maxclients) are in use; beyond that the server refuses new ones, "+
			"and calls of Clients that need one wait until their context ends, or return ErrUnavailable: "+
			"raise maxclients and ulimit -n, or share one Client in each process", used, limit)
	}
	return findings
}

// nearLimit is the share of maxclients, in percent, from which on Check warns: the rest must be
// enough for a rollout, in which the old processes and the new ones run at the same time.
const nearLimit = 80

// connections returns how many connections count against the server's limit, and that limit. The
// limit is 0 if the server does not report it. Replicas and the links between the servers of a
// cluster count against the limit too, but connected_clients does not include them.
func connections(info map[string]string) (used, limit int) {
	limit, _ = strconv.Atoi(info["maxclients"])
	for _, field := range []string{"connected_clients", "connected_slaves", "cluster_connections"} {
		n, _ := strconv.Atoi(info[field])
		used += n
	}
	return used, limit
}

func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[field] = value
		}
	}
	return info
}
