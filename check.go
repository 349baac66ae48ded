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

// Finding is one property of a Redis that voids or endangers a promise of Holdfast.
type Finding struct {
	Server  string // the server's address
	Problem Problem
	// Kind is, if Problem is Rights, the synchronizer that lacks rights, by its name in spans (holdfast.kind): "mutex",
	// "fairmutex", "rwlock", "semaphore", "permits", "slots", "latch", "barrier", "limiter", "once", "leader" or
	// "quorum"; or "identity", if WithIdentity lacks rights. It is "" if Check itself lacks rights, or if Replicas
	// lacks WAIT. A program that does not use a kind can ignore its findings.
	Kind   string
	Detail string // a description for people
}

// String returns the finding as one line.
func (f Finding) String() string { return f.Server + ": " + string(f.Problem) + ": " + f.Detail }

// Problem is the kind of a Finding.
type Problem string

// The problems that Check looks for.
const (
	// Eviction: when its memory is full, Redis may drop a lock that is held. Then two may hold it.
	Eviction Problem = "eviction"
	// Persistence: when it restarts, Redis forgets the locks that are held. Then two may hold one
	// lock.
	Persistence Problem = "persistence"
	// Replication: a grant is lost if the master fails before the grant has reached the replica
	// that takes over. Then two may hold the same lock.
	Replication Problem = "replication"
	// Rights: the Redis user may not do something that Holdfast needs, or the server lacks a command,
	// for example because it was renamed or disabled.
	Rights Problem = "rights"
	// Servers: this server belongs to a Quorum of one server, which outlives no failure, or of
	// an even number of servers, which outlives no more failures than one server fewer would.
	Servers Problem = "servers"
	// Connections: 80 % or more of the connections that the server allows (maxclients) are in use.
	// At the limit it refuses new ones: then calls that need a new one wait until their context
	// ends, or return ErrUnavailable.
	Connections Problem = "connections"
)

// Check asks every master behind the Client what could void the promises in docs/guarantees.md: an eviction
// policy, missing persistence, asynchronous replication, missing rights, and a quorum of one server or of an
// even number. It also finds a server near its limit of connections. If the Client waits for replicas, Check
// also reports too few connected replicas, and a user that may not use WAIT. If there is nothing to report,
// Check returns no findings. If Check itself fails, it returns the error and what it had found before. The
// findings may explain the error: a server may be at its limit of connections.
//
// Rights depend on the names in use and on the kinds of synchronizer. For each of names, by default
// for "holdfast", Check locks and releases a name of its own that begins with it. There it also
// tries out the commands, keys and channels of every other kind. What this leaves behind is gone
// after two seconds. If a kind lacks a right, Check returns a finding of that Kind.
//
// Check learns of a quorum from the marker that the quorum's first Lock leaves on each server. Before that
// Lock it reports nothing about the quorum. If servers were added or removed since, the finding is about the
// earlier set.
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
		if err != nil {
			return findings, errs.Wrap("check rights on "+errs.Quote(name), err)
		}
		findings = append(findings, found...)
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
