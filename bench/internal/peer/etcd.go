// Etcd takes part in elections, by its own package and with a server of its own.

package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// StartEtcd starts a server in this process, with its data in dir. It does not wait for the disk, as Redis
// here has no file at all.
func StartEtcd(ctx context.Context, dir string) (addr string, stop func(), err error) {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = dir, "panic", true
	clients, err1 := freeURL()
	members, err2 := freeURL()
	if err := errors.Join(err1, err2); err != nil {
		return "", nil, err
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{members}, []url.URL{members}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return "", nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return clients.Host, e.Close, nil
	case err := <-e.Err():
		return "", nil, fmt.Errorf("etcd: %w", err)
	case <-ctx.Done():
		e.Close()
		return "", nil, ctx.Err()
	}
}

// freeURL returns an address on the loopback at which nobody listens.
func freeURL() (url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, err
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}

// electEtcd opens a session, which all candidates of the process share. What it does ends with ctx.
func electEtcd(ctx context.Context, addr string) (Process, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Context: ctx, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(Term/time.Second)))
	if err != nil {
		client.Close()
		return nil, err
	}
	return etcdElections{client, session}, nil
}

type etcdElections struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func (p etcdElections) Close() {
	_ = p.session.Close() // its lease runs out
	_ = p.client.Close()
}

func (p etcdElections) Lock(name string) Lock {
	return etcdCandidate{concurrency.NewElection(p.session, name)}
}

type etcdCandidate struct{ election *concurrency.Election }

// Pair implements Lock.
func (c etcdCandidate) Pair(ctx context.Context, work func()) error {
	if err := c.election.Campaign(ctx, "candidate"); err != nil {
		return err
	}
	work()
	return c.election.Resign(ctx)
}
