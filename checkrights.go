// How Check finds missing rights: it tries out everything that each kind does.

package holdfast

import (
	"context"
	"errors"
	"fmt"
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

// checkRights does everything that Holdfast would do with name, on a name of its own that begins
// with it.
func (c *Client) checkRights(ctx context.Context, name string) ([]Finding, error) {
	probe := ":check:" + uuid.NewString()
	if name != "" {
		probe = c.mapped(name) + probe
	} else {
		probe = c.space.At(probe)
	}
	at, err := c.space.ForFairLock(probe)
	if err != nil {
		return nil, err
	}
	server, err := c.engine.Conn.Node(ctx, at.Hash)
	if err != nil {
		return nil, err
	}
	tries, err := c.tryKinds(ctx, probe, server, at)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, try := range tries.all {
		switch err := try.err; {
		case err == nil:
		case denied(err):
			findings = append(findings, Finding{server, Rights, try.kind,
				fmt.Sprintf("a %s cannot %s names like %s: %v", try.kind, try.what, errs.Quote(name), err)})
		case tries.late && !over(ctx):
			findings = append(findings, Finding{Server: server, Problem: Replication,
				Detail: fmt.Sprintf("could not %s within %v: %v", try.what, probeTimeout, err)})
			return findings, nil
		default:
			return findings, err
		}
	}
	return findings, nil
}

// tried is the outcome of trying out one part of what a kind does.
type tried struct {
	kind, what string
	err        error
}

// tries are the parts that were tried out, up to the first one that took too long.
type tries struct {
	all  []tried
	late bool // the last one did
}

// add tries out one more part. A call to a server that does not take writes would be retried for as long as
// that lasts.
func (t *tries) add(ctx context.Context, kind, what string, part func(ctx context.Context) error) {
	if t.late {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := part(ctx)
	t.all = append(t.all, tried{kind, what, err})
	t.late = err != nil && !denied(err) && over(ctx)
}

// over reports whether ctx has ended. A read that its deadline ends may return just before ctx itself ends.
func over(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(end)
}

// tryKinds tries out all that each kind does, at a name that no program uses.
func (c *Client) tryKinds(ctx context.Context, probe, server string, at keys.FairLock) (all tries, err error) {
	sharded, err := c.engine.Conn.Sharded(ctx)
	if err != nil {
		return all, err
	}
	rdb := c.engine.Conn.DialAtOnce(server)
	defer func() { _ = rdb.Close() }()
	const scripts, channels = "lock and release", "subscribe to and publish on the channels of"
	all.add(ctx, "mutex", scripts, func(ctx context.Context) error { return rlock.Probe(ctx, c.engine, at) })
	all.add(ctx, "mutex", channels, func(ctx context.Context) error {
		return probeChannels(ctx, rdb, sharded, at.Channel, at.GrantTo(c.engine.Client()))
	})
	var refused error // why no connection was to be had, which is the same for every kind
	for _, need := range rights.Needs(c.space, probe, c.engine.Client(), sharded) {
		all.add(ctx, need.Kind, "use", func(ctx context.Context) error {
			if refused != nil {
				return refused
			}
			call := need.Probe()
			err := c.probeScripts(ctx, call)
			if call.Attempts == 0 && errors.Is(err, errs.Denied) {
				refused = err
			}
			return err
		})
		if len(need.Channels) > 0 {
			all.add(ctx, need.Kind, channels, func(ctx context.Context) error {
				return c.probeChannelsOf(ctx, rdb, server, sharded, need)
			})
		}
	}
	all.add(ctx, "quorum", "read the marker beside", func(ctx context.Context) error {
		_, err := quorum.ProbeMarker(ctx, c.engine)
		return err
	})
	return all, nil
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

// checkIdentity finds out whether the Client may say who it is, if it is to.
func (c *Client) checkIdentity(ctx context.Context) []Finding {
	if c.config.identity == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	need := rights.OfIdentity(c.space, uuid.NewString()) // nobody's, so that what the Client says stays as it is
	if err := c.probeScripts(ctx, need.Probe()); denied(err) {
		server, _ := c.engine.Conn.Node(ctx, need.Keys[0])
		return []Finding{{server, Rights, need.Kind,
			fmt.Sprintf("the Client cannot say who it is (WithIdentity), and does without: %v", err)}}
	}
	return nil
}

// probeTimeout bounds how long Check tries out one part of what a kind does.
const probeTimeout = 2 * time.Second

// denied reports whether Redis refused a call because the user lacks a right, or because the server does not have the
// command, for example after a rename.
func denied(err error) bool {
	return errors.Is(err, errs.Denied) || redis.HasErrorPrefix(err, "NOPERM") || conn.LacksCommand(err)
}
