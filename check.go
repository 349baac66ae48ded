// What of a Redis voids the promises.

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

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/rights"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// Finding is one thing about a Redis that voids something Holdfast promises.
type Finding struct {
	Server  string // its address
	Problem Problem
	// Kind is the synchronizer that lacks rights, where Problem is Rights: "mutex",
	// "fairmutex", "rwlock", "semaphore", "permits", "latch" or "quorum", as holdfast.kind
	// names it in spans; "" if Check itself lacks them. A program that does not use a kind
	// can leave out its findings.
	Kind   string
	Detail string // in words
}

// String returns the finding as one line.
func (f Finding) String() string { return f.Server + ": " + string(f.Problem) + ": " + f.Detail }

// Problem is the kind of a Finding.
type Problem string

// The problems that Check looks for.
const (
	// Eviction: Redis may drop a key that is held when its memory is full. Two
	// may hold the same lock then.
	Eviction Problem = "eviction"
	// Persistence: Redis forgets what is held when it restarts. Two may hold the
	// same lock then.
	Persistence Problem = "persistence"
	// Replication: a grant is lost if the master fails before it has reached the
	// replica that takes over. Two may hold the same lock then.
	Replication Problem = "replication"
	// Rights: the user may not do what Holdfast needs.
	Rights Problem = "rights"
	// Servers: a Quorum that this server belongs to has one server, which outlives no
	// failure, or an even number, which outlives no more failures than one server less.
	Servers Problem = "servers"
)

// Check asks every master behind the Client for what voids the promises in
// docs/guarantees.md: an eviction policy, missing persistence, asynchronous
// replication, missing rights, a quorum of one server or of an even number; and, where the
// Client waits for replicas, that there are too few or that it may not. It returns no
// findings if there is nothing to
// say, and an error if the question itself failed.
//
// Rights depend on the names in use, and on the kinds. For each of names, or for
// "holdfast" if there are none, Check locks and releases a name of its own that
// begins with it, tries out the commands, keys and channels of every other kind
// there, and leaves nothing but for a second. What some kind may not do is a
// finding of that Kind. It is meant for the start of a program, and for its
// operators.
func (c *Client) Check(ctx context.Context, names ...string) ([]Finding, error) {
	if c.err != nil {
		return nil, errs.Wrap("check", c.err)
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
			return nil, errs.Wrap("check "+server, err)
		}
		findings = append(findings, found...)
	}
	findings = append(findings, c.checkQuorum(ctx, servers)...)
	for _, name := range names {
		found, err := c.checkRights(ctx, name)
		if err != nil {
			return nil, errs.Wrap("check rights on "+lease.Quote(name), err)
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// checkQuorum reads from the marker of a quorum, if there is one, of how many servers the
// quorum is. Whether the marker may be read is found out with the other rights.
func (c *Client) checkQuorum(ctx context.Context, servers []string) []Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	n, err := multilock.ProbeMarker(ctx, c.engine)
	if err != nil || n == 0 || n%2 == 1 && n > 1 || len(servers) != 1 {
		return nil
	}
	detail := fmt.Sprintf("a quorum of %d servers outlives the failure of %d, as one of %d does", n, (n-1)/2, n-1)
	if n == 1 {
		detail = "a quorum of one server outlives no failure"
	}
	return []Finding{{Server: servers[0], Problem: Servers, Kind: "quorum", Detail: detail}}
}

// checkServer reads from INFO, for which a user without CONFIG has the rights,
// how one server is set up.
func (c *Client) checkServer(ctx context.Context, server string) ([]Finding, error) {
	rdb, err := c.engine.Conn.Dial(server)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rdb.Close() }()
	text, err := rdb.Info(ctx).Result()
	if denied(err) {
		return []Finding{{Server: server, Problem: Rights, Detail: "INFO is refused, so memory, persistence and replication are not known: " + err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	info := parseInfo(text)
	return append(readInfo(server, info), checkReplicas(ctx, rdb, server, info, c.common.Replicas())...), nil
}

// checkReplicas finds what keeps a grant from being acknowledged by as many replicas as the
// Client waits for: too few of them, or no right to ask.
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
			Detail: "WAIT is refused, which Replicas needs: " + err.Error()})
	}
	return findings
}

// readInfo finds what is wrong in the fields of INFO.
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
	return findings
}

// parseInfo returns the fields of INFO's answer.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[field] = value
		}
	}
	return info
}

// checkRights does with a name of its own what Holdfast does with name.
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
	// A server that does not take writes would be asked until it does.
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
				fmt.Sprintf("a %s cannot %s names like %s: %v", try.kind, try.what, lease.Quote(name), err)})
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

// tried is what came of trying out what a kind does.
type tried struct {
	kind, what string
	err        error
}

// tryKinds tries out all that each kind does, at a name that is nobody's.
func (c *Client) tryKinds(ctx context.Context, probe, server string, at keys.FairLock) ([]tried, error) {
	sharded, err := c.engine.Conn.Sharded(ctx)
	if err != nil {
		return nil, err
	}
	rdb, err := c.engine.Conn.Dial(server)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rdb.Close() }()
	const scripts, channels = "lock and release", "subscribe to and publish on the channels of"
	all := []tried{
		{"mutex", scripts, rlock.Probe(ctx, c.engine, at)},
		{"mutex", channels, probeChannels(ctx, rdb, sharded, at.Channel, at.GrantTo(c.engine.Client()))},
	}
	for _, need := range rights.Needs(probe, c.engine.Client(), sharded) {
		all = append(all,
			tried{need.Kind, "use", c.probeScripts(ctx, need)},
			tried{need.Kind, channels, probeChannels(ctx, rdb, sharded, need.Channels...)})
	}
	_, err = multilock.ProbeMarker(ctx, c.engine)
	return append(all, tried{"quorum", "read the marker beside", err}), nil
}

// probeScripts tries out the keys and the commands that a kind needs.
func (c *Client) probeScripts(ctx context.Context, need rights.Need) error {
	call := need.Probe()
	if err := c.engine.Conn.Run(ctx, call); err != nil {
		return err
	}
	if refused := rights.Refused(call); len(refused) > 0 {
		return fmt.Errorf("%w: the commands %s", errs.Denied, strings.Join(refused, ", "))
	}
	return nil
}

// probeChannels subscribes to channels of one slot and publishes on them.
func probeChannels(ctx context.Context, rdb *redis.Client, sharded bool, channels ...string) error {
	subscribe, publish := rdb.Subscribe, rdb.Publish
	if sharded {
		subscribe, publish = rdb.SSubscribe, rdb.SPublish
	}
	sub := subscribe(ctx, channels...)
	defer func() { _ = sub.Close() }()
	if _, err := sub.ReceiveTimeout(ctx, probeTimeout); err != nil {
		return err
	}
	for _, channel := range channels {
		if err := publish(ctx, channel, "0").Err(); err != nil {
			return err
		}
	}
	return nil
}

// probeTimeout bounds how long one name is tried out.
const probeTimeout = 2 * time.Second

// denied reports whether Redis refused for want of rights.
func denied(err error) bool {
	return errors.Is(err, errs.Denied) || redis.HasErrorPrefix(err, "NOPERM")
}
