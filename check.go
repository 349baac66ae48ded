// What of a Redis voids the promises.

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// Finding is one thing about a Redis that voids something Holdfast promises.
type Finding struct {
	Server  string // its address
	Problem Problem
	Detail  string // in words
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
)

// Check asks every master behind the Client for what voids the promises in
// docs/guarantees.md: an eviction policy, missing persistence, asynchronous
// replication, missing rights. It returns no findings if there is nothing to
// say, and an error if the question itself failed.
//
// Rights depend on the names in use. For each of names, or for "holdfast" if
// there are none, Check locks and releases a name of its own that begins with it,
// and subscribes to its channel. It is meant for the start of a program, and for
// its operators.
func (c *Client) Check(ctx context.Context, names ...string) ([]Finding, error) {
	if c.err != nil {
		return nil, fmt.Errorf("holdfast: check: %w", c.err)
	}
	if len(names) == 0 {
		names = []string{"holdfast"}
	}
	var findings []Finding
	servers, err := c.engine.Conn.Masters(ctx)
	if err != nil {
		return nil, fmt.Errorf("holdfast: check: %w", err)
	}
	for _, server := range servers {
		found, err := c.checkServer(ctx, server)
		if err != nil {
			return nil, fmt.Errorf("holdfast: check %s: %w", server, err)
		}
		findings = append(findings, found...)
	}
	for _, name := range names {
		found, err := c.checkRights(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("holdfast: check rights on %s: %w", lease.Quote(name), err)
		}
		findings = append(findings, found...)
	}
	return findings, nil
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
		return []Finding{{server, Rights, "INFO is refused, so memory, persistence and replication are not known: " + err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	return readInfo(server, parseInfo(text)), nil
}

// readInfo finds what is wrong in the fields of INFO.
func readInfo(server string, info map[string]string) []Finding {
	var findings []Finding
	add := func(p Problem, format string, args ...any) {
		findings = append(findings, Finding{server, p, fmt.Sprintf(format, args...)})
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
	var findings []Finding
	tries := map[string]error{
		"lock and release": rlock.Probe(ctx, c.engine, at),
		"subscribe and publish": errors.Join(
			c.probeChannel(ctx, server, at.Channel),
			c.probeChannel(ctx, server, at.GrantTo(c.engine.Client())),
		),
	}
	for _, what := range slices.Sorted(maps.Keys(tries)) {
		switch err := tries[what]; {
		case err == nil:
		case denied(err):
			findings = append(findings, Finding{server, Rights,
				fmt.Sprintf("cannot %s names like %s: %v", what, lease.Quote(name), err)})
		case ctx.Err() != nil:
			findings = append(findings, Finding{server, Replication,
				fmt.Sprintf("could not %s within %v: %v", what, probeTimeout, err)})
		default:
			return nil, err
		}
	}
	return findings, nil
}

// probeChannel subscribes to a channel and publishes on it.
func (c *Client) probeChannel(ctx context.Context, server, channel string) error {
	sharded, err := c.engine.Conn.Sharded(ctx)
	if err != nil {
		return err
	}
	rdb, err := c.engine.Conn.Dial(server)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()

	subscribe, publish := rdb.Subscribe, rdb.Publish
	if sharded {
		subscribe, publish = rdb.SSubscribe, rdb.SPublish
	}
	sub := subscribe(ctx, channel)
	defer func() { _ = sub.Close() }()
	if _, err := sub.ReceiveTimeout(ctx, probeTimeout); err != nil {
		return err
	}
	return publish(ctx, channel, "0").Err()
}

// probeTimeout bounds how long one name is tried out.
const probeTimeout = 2 * time.Second

// denied reports whether Redis refused for want of rights.
func denied(err error) bool {
	return errors.Is(err, errs.Denied) || redis.HasErrorPrefix(err, "NOPERM")
}
