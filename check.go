// Check: which properties of a Redis void the promises.

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/rights"
	"github.com/holdfast-go/holdfast/quorum"
	"github.com/holdfast-go/holdfast/rlock"
)

// Finding is one property of a Redis that voids something that Holdfast promises.
type Finding struct {
	Server  string // the server's address
	Problem Problem
	// Kind is the synchronizer that lacks rights, where Problem is Rights: "mutex",
	// "fairmutex", "rwlock", "semaphore", "permits", "slots", "latch", "barrier", "limiter", "once", "leader" or
	// "quorum", as holdfast.kind names it in spans; or "identity", if the Client cannot say who it is. It is
	// "" if Check itself lacks them, and for WAIT, which Replicas needs. A program that does not use a kind can ignore that kind's findings.
	Kind   string
	Detail string // a description for people
}

// String returns the finding as one line.
func (f Finding) String() string { return f.Server + ": " + string(f.Problem) + ": " + f.Detail }

// Problem is the kind of a Finding.
type Problem string

// The problems that Check looks for.
const (
	// Eviction: Redis may drop a key that is held when its memory is full. Then two may hold
	// the same lock.
	Eviction Problem = "eviction"
	// Persistence: Redis forgets the locks that are held when it restarts. Then two may hold
	// the same lock.
	Persistence Problem = "persistence"
	// Replication: a grant is lost if the master fails before the grant has reached the replica
	// that takes over. Then two may hold the same lock.
	Replication Problem = "replication"
	// Rights: the Redis user is not allowed to do something that Holdfast needs, or the server does not
	// have a command, as where it is renamed or disabled.
	Rights Problem = "rights"
	// Servers: this server belongs to a Quorum of one server, which outlives no failure, or of
	// an even number of servers, which outlives no more failures than one server fewer would.
	Servers Problem = "servers"
	// Connections: 80 % or more of the connections that the server allows (maxclients) are in
	// use. Beyond that limit it refuses new ones: then calls that need one wait until their
	// context ends, or return ErrUnavailable.
	Connections Problem = "connections"
)

// Check asks every master behind the Client for anything that voids the promises in docs/guarantees.md: an
// eviction policy, missing persistence, asynchronous replication, missing rights, and a quorum of one server
// or of an even number. It also finds a server near its limit of connections. Where the Client waits for
// replicas, Check also finds that too few of them are connected, or that the user may not use WAIT. If there
// is nothing to report, Check returns no findings. If Check itself fails, it returns the error and what it
// had found before: a server may have refused the connection, since it is at its limit, or be out of memory.
//
// Rights depend on the names in use and on the kinds of synchronizer. For each of names, or for
// "holdfast" if there are none, Check locks and releases a name of its own that begins with
// that name. There it also tries out the commands, keys and channels of every other kind. What
// this leaves behind is gone after two seconds. If a kind is not allowed something that it needs,
// Check returns a finding of that Kind.
//
// What Check finds about a quorum, it reads from the marker that the quorum's first Lock leaves on each
// server. Before that Lock it finds nothing. After servers were added or taken away, the finding is about the
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

// checkIdentity finds out whether the Client may say who it is, if it is to.
func (c *Client) checkIdentity(ctx context.Context) []Finding {
	if c.config.identity == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	need := rights.OfIdentity(uuid.NewString()) // nobody's, so that what the Client says stays as it is
	if err := c.probeScripts(ctx, need.Probe()); denied(err) {
		server, _ := c.engine.Conn.Node(ctx, need.Keys[0])
		return []Finding{{server, Rights, need.Kind,
			fmt.Sprintf("the Client cannot say who it is (WithIdentity), and does without: %v", err)}}
	}
	return nil
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

// nearLimit is the share of maxclients, in percent, from which on Check warns: what is left must
// do for a rollout, in which the old processes and the new ones run at the same time.
const nearLimit = 80

// connections returns how many connections count against the server's limit, and that limit. The
// limit is 0 if the server does not say it. Replicas and a cluster's own links count against it,
// and connected_clients has neither.
func connections(info map[string]string) (used, limit int) {
	limit, _ = strconv.Atoi(info["maxclients"])
	for _, field := range []string{"connected_clients", "connected_slaves", "cluster_connections"} {
		n, _ := strconv.Atoi(info[field])
		used += n
	}
	return used, limit
}

// parseInfo returns the fields of INFO's reply.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[field] = value
		}
	}
	return info
}

// checkRights does with a name of its own everything that Holdfast does with name.
func (c *Client) checkRights(ctx context.Context, name string) ([]Finding, error) {
	probe := c.mapped(name) + ":check:" + uuid.NewString()
	at, err := keys.ForFairLock(probe)
	if err != nil {
		return nil, err
	}
	server, err := c.engine.Conn.Node(ctx, at.Hash)
	if err != nil {
		return nil, err
	}
	// A call to a server that does not take writes would be retried for as long as that lasts.
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	tries, err := c.tryKinds(ctx, probe, server, at)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, try := range tries {
		switch err := try.err; {
		case err == nil:
		case denied(err):
			findings = append(findings, Finding{server, Rights, try.kind,
				fmt.Sprintf("a %s cannot %s names like %s: %v", try.kind, try.what, errs.Quote(name), err)})
		case ctx.Err() != nil:
			findings = append(findings, Finding{Server: server, Problem: Replication,
				Detail: fmt.Sprintf("could not %s within %v: %v", try.what, probeTimeout, err)})
			return findings, nil
		default:
			return nil, err
		}
	}
	return findings, nil
}

// tried is the outcome of trying out one part of what a kind does.
type tried struct {
	kind, what string
	err        error
}

// tryKinds tries out all that each kind does, at a name that no program uses.
func (c *Client) tryKinds(ctx context.Context, probe, server string, at keys.FairLock) ([]tried, error) {
	sharded, err := c.engine.Conn.Sharded(ctx)
	if err != nil {
		return nil, err
	}
	rdb := c.engine.Conn.DialAtOnce(server)
	defer func() { _ = rdb.Close() }()
	const scripts, channels = "lock and release", "subscribe to and publish on the channels of"
	all := []tried{
		{"mutex", scripts, rlock.Probe(ctx, c.engine, at)},
		{"mutex", channels, probeChannels(ctx, rdb, sharded, at.Channel, at.GrantTo(c.engine.Client()))},
	}
	var refused error // why no connection was to be had, which is the same for every kind
	for _, need := range rights.Needs(probe, c.engine.Client(), sharded) {
		err := refused
		if err == nil {
			call := need.Probe()
			err = c.probeScripts(ctx, call)
			if call.Attempts == 0 && errors.Is(err, errs.Denied) {
				refused = err
			}
		}
		all = append(all, tried{need.Kind, "use", err})
		if len(need.Channels) > 0 {
			all = append(all, tried{need.Kind, channels, c.probeChannelsOf(ctx, rdb, server, sharded, need)})
		}
	}
	_, err = quorum.ProbeMarker(ctx, c.engine)
	return append(all, tried{"quorum", "read the marker beside", err}), nil
}

// probeScripts tries out the keys and the commands that a kind needs, by its call of rights.Probe.
func (c *Client) probeScripts(ctx context.Context, call *conn.Call) error {
	if err := c.engine.Conn.Run(ctx, call); err != nil {
		return err
	}
	if refused := rights.Refused(call); len(refused) > 0 {
		return fmt.Errorf("%w: the commands %s", errs.Denied, strings.Join(refused, ", "))
	}
	return nil
}

// probeChannelsOf tries out the channels that a kind needs. rdb leads to server; sharded channels of a
// key in another slot may be on another one.
func (c *Client) probeChannelsOf(ctx context.Context, rdb *redis.Client, server string, sharded bool, need rights.Need) error {
	if sharded {
		addr, err := c.engine.Conn.Node(ctx, need.Keys[0])
		if err != nil {
			return err
		}
		if addr != server {
			if rdb, err = c.engine.Conn.Dial(addr); err != nil {
				return err
			}
			defer func() { _ = rdb.Close() }()
		}
	}
	return probeChannels(ctx, rdb, sharded, need.Channels...)
}

// probeChannels subscribes to channels of one slot, and publishes on them.
func probeChannels(ctx context.Context, rdb *redis.Client, sharded bool, channels ...string) error {
	subscribe, publish := rdb.Subscribe, rdb.Publish
	if sharded {
		subscribe, publish = rdb.SSubscribe, rdb.SPublish
	}
	sub := subscribe(ctx, channels...)
	defer func() { _ = sub.Close() }()
	if _, err := sub.ReceiveTimeout(ctx, probeTimeout); err != nil {
		return conn.Typed(err)
	}
	for _, channel := range channels {
		if err := publish(ctx, channel, "0").Err(); err != nil {
			return conn.Typed(err)
		}
	}
	return nil
}

// probeTimeout bounds how long Check tries out one name.
const probeTimeout = 2 * time.Second

// denied reports whether Redis refused a call because the user lacks a right, or because the server does
// not have the command, as where it is renamed.
func denied(err error) bool {
	return errors.Is(err, errs.Denied) || redis.HasErrorPrefix(err, "NOPERM") || conn.LacksCommand(err)
}
