// Package etcdtest starts an etcd server within a test. Only tests import it.
package etcdtest

import (
	"net"
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Start starts a server, which ends with the test, and returns its address. It does not wait for the disk. It
// skips t unless HOLDFAST_SERVERS=1, as each test on real servers does.
func Start(t testing.TB) (addr string) {
	t.Helper()
	redistest.RealTime(t)
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = t.TempDir(), "panic", true
	clients, members := freeURL(t), freeURL(t)
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{members}, []url.URL{members}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("etcd is not ready")
	}
	return clients.Host
}

// freeURL returns an address on the loopback at which nobody listens.
func freeURL(t testing.TB) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}
