package address

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// read returns what goes to go-redis for a URL.
func read(a *Address) string {
	var out string
	switch {
	case a.Server != nil:
		o := a.Server
		out = fmt.Sprintf("%s %s db=%d %s", o.Network, o.Addr, o.DB, login(o.Username, o.Password))
	case a.Cluster != nil:
		o := a.Cluster
		out = fmt.Sprintf("cluster %s %s", strings.Join(o.Addrs, " "), login(o.Username, o.Password))
	default:
		o := a.Sentinel
		out = fmt.Sprintf("master %s at %s db=%d %s", o.MasterName, strings.Join(o.SentinelAddrs, " "), o.DB, login(o.Username, o.Password))
		if o.SentinelUsername+o.SentinelPassword != "" {
			out += " sentinels " + login(o.SentinelUsername, o.SentinelPassword)
		}
	}
	if c := a.TLS(); c != nil {
		out += " tls=" + c.ServerName
		if c.InsecureSkipVerify {
			out += " unverified"
		}
	}
	return strings.Join(strings.Fields(out), " ")
}

func login(user, password string) string {
	if user+password == "" {
		return ""
	}
	return user + ":" + password
}

// Each form is read rightly. A form that was added and one that go-redis has would otherwise differ in a default: a
// port, a database, whose password it is, or the name that a certificate must have.
func TestURLsThatAreRead(t *testing.T) {
	for _, c := range []struct{ url, want, shown string }{
		// One server.
		{"redis://localhost:6379", "tcp localhost:6379 db=0", "redis://localhost:6379"},
		{"redis://", "tcp localhost:6379 db=0", "redis://localhost:6379"},
		{"redis://db1", "tcp db1:6379 db=0", "redis://db1:6379"},
		{"redis://db1/", "tcp db1:6379 db=0", "redis://db1:6379"},
		{"redis://db1:7000/2", "tcp db1:7000 db=2", "redis://db1:7000/2"},
		{"redis://db1?db=3", "tcp db1:6379 db=3", "redis://db1:6379/3"},
		{"redis://:s3cr@db1", "tcp db1:6379 db=0 :s3cr", "redis://db1:6379"},
		{"redis://app:s3cr@db1/1", "tcp db1:6379 db=1 app:s3cr", "redis://db1:6379/1"},
		{"redis://app@db1", "tcp db1:6379 db=0 app:", "redis://db1:6379"},
		{"redis://app:s3%2Fcr%40%23%3F%25%3A%26%2B@db1", "tcp db1:6379 db=0 app:s3/cr@#?%:&+", "redis://db1:6379"},
		{"redis://:s3@cr@db1", "tcp db1:6379 db=0 :s3@cr", "redis://db1:6379"},
		{"redis://app:s3:cr,a+b!$'()*;=~@db1", "tcp db1:6379 db=0 app:s3:cr,a+b!$'()*;=~", "redis://db1:6379"},
		{"redis://[::1]:7000", "tcp [::1]:7000 db=0", "redis://[::1]:7000"},
		{"redis://:s3cr@[2001:db8::7]", "tcp [2001:db8::7]:6379 db=0 :s3cr", "redis://[2001:db8::7]:6379"},
		{"REDIS://db1", "tcp db1:6379 db=0", "REDIS://db1:6379"},
		{"valkey://:s3cr@db1/4", "tcp db1:6379 db=4 :s3cr", "valkey://db1:6379/4"},
		{"redis://db1?dial_timeout=2s&protocol=2&client_name=x", "tcp db1:6379 db=0", "redis://db1:6379"},
		// With TLS.
		{"rediss://db1", "tcp db1:6379 db=0 tls=db1", "rediss://db1:6379"},
		{"rediss://app:s3cr@[::1]:7000", "tcp [::1]:7000 db=0 app:s3cr tls=::1", "rediss://[::1]:7000"},
		{"valkeys://db1", "tcp db1:6379 db=0 tls=db1", "valkeys://db1:6379"},
		{"redis+tls://db1", "tcp db1:6379 db=0 tls=db1", "redis+tls://db1:6379"},
		{"redis+ssl://db1", "tcp db1:6379 db=0 tls=db1", "redis+ssl://db1:6379"},
		{"rediss://db1?skip_verify=true", "tcp db1:6379 db=0 tls=db1 unverified", "rediss://db1:6379"},
		{"rediss://db1?skip_verify=false", "tcp db1:6379 db=0 tls=db1", "rediss://db1:6379"},
		// By a socket.
		{"unix:///run/redis.sock", "unix /run/redis.sock db=0", "unix:///run/redis.sock"},
		{"unix://app:s3cr@/run/redis.sock?db=2", "unix /run/redis.sock db=2 app:s3cr", "unix:///run/redis.sock"},
		{"unix:///run/a@b/redis%20x.sock", "unix /run/a@b/redis x.sock db=0", "unix:///run/a@b/redis x.sock"},
		{"redis+socket:///run/redis.sock?virtual_host=5", "unix /run/redis.sock db=5", "redis+socket:///run/redis.sock"},
		{"redis-socket:///run/redis.sock", "unix /run/redis.sock db=0", "redis-socket:///run/redis.sock"},
		{"redis+unix:///run/redis.sock", "unix /run/redis.sock db=0", "redis+unix:///run/redis.sock"},
		// A cluster.
		{"redis+cluster://n1", "cluster n1:6379", "redis+cluster://n1:6379"},
		{"redis+cluster://n1:7000?addr=n2:7001&addr=n3:7002", "cluster n1:7000 n2:7001 n3:7002", "redis+cluster://n1:7000,n2:7001,n3:7002"},
		{"redis+cluster://n1:7000,n2:7001,n3", "cluster n1:7000 n2:7001 n3:6379", "redis+cluster://n1:7000,n2:7001,n3:6379"},
		{"redis+cluster://n1:7000, n2:7001", "cluster n1:7000 n2:7001", "redis+cluster://n1:7000,n2:7001"},
		{"redis+cluster://app:s3,cr@n1:7000,[::1]:7001/0", "cluster n1:7000 [::1]:7001 app:s3,cr", "redis+cluster://n1:7000,[::1]:7001"},
		{"rediss+cluster://:s3cr@n1", "cluster n1:6379 :s3cr tls=n1", "rediss+cluster://n1:6379"},
		{"rediss+cluster://n1,n2?skip_verify=1", "cluster n1:6379 n2:6379 tls= unverified", "rediss+cluster://n1:6379,n2:6379"},
		{"valkey+cluster://n1,n2", "cluster n1:6379 n2:6379", "valkey+cluster://n1:6379,n2:6379"},
		{"redis-cluster://n1,n2", "cluster n1:6379 n2:6379", "redis-cluster://n1:6379,n2:6379"},
		// Sentinels, as go-redis has them: what stands before the hosts is the Sentinels'.
		{"redis+sentinel://s1:26379?master_name=main", "master main at s1:26379 db=0", "redis+sentinel://s1:26379/main"},
		{"redis+sentinel://s1?master_name=main&addr=s2:26380", "master main at s1:26379 s2:26380 db=0", "redis+sentinel://s1:26379,s2:26380/main"},
		{"redis+sentinel://watch:s3cr@s1/2?master_name=main", "master main at s1:26379 db=2 sentinels watch:s3cr", "redis+sentinel://s1:26379/main"},
		{
			"rediss+sentinel://watch:s3crA@s1?master_name=main&username=app&password=s3crB",
			"master main at s1:26379 db=0 app:s3crB sentinels watch:s3crA tls=s1", "rediss+sentinel://s1:26379/main",
		},
		// Sentinels, as others have them: what stands before the hosts is Redis's own.
		{"redis+sentinel://s1:26379,s2:26380,s3/main", "master main at s1:26379 s2:26380 s3:26379 db=0", "redis+sentinel://s1:26379,s2:26380,s3:26379/main"},
		{"redis+sentinel://app:s3cr@s1,s2/main/3", "master main at s1:26379 s2:26379 db=3 app:s3cr", "redis+sentinel://s1:26379,s2:26379/main"},
		{"redis+sentinel://s1/3/main", "master main at s1:26379 db=3", "redis+sentinel://s1:26379/main"},
		{"redis-sentinel://:s3cr@s1:26379,s2:26379/2#main", "master main at s1:26379 s2:26379 db=2 :s3cr", "redis-sentinel://s1:26379,s2:26379/main"},
		{"redis-sentinel://s1?sentinelMasterId=main", "master main at s1:26379 db=0", "redis-sentinel://s1:26379/main"},
		{"redis+sentinel://s1,[::1]:26380?master=main&db=1", "master main at s1:26379 [::1]:26380 db=1", "redis+sentinel://s1:26379,[::1]:26380/main"},
		{"valkeys+sentinel://s1,s2/main", "master main at s1:26379 s2:26379 db=0 tls=", "valkeys+sentinel://s1:26379,s2:26379/main"},
		// Both, in either form: the options say whose the other is.
		{"redis+sentinel://s3crA:s3crB@s1/main?password=s3crC", "master main at s1:26379 db=0 :s3crC sentinels s3crA:s3crB", "redis+sentinel://s1:26379/main"},
		{"redis+sentinel://app:s3crA@s1/main?sentinel_password=s3crB", "master main at s1:26379 db=0 app:s3crA sentinels :s3crB", "redis+sentinel://s1:26379/main"},
		{
			"redis+sentinel://s1?master_name=main&password=s3crA&sentinel_username=watch&sentinel_password=s3crB",
			"master main at s1:26379 db=0 :s3crA sentinels watch:s3crB", "redis+sentinel://s1:26379/main",
		},
		// As secrets and environment files have them.
		{"redis://:s3cr@db1/1\n", "tcp db1:6379 db=1 :s3cr", "redis://db1:6379/1"},
		{" \"redis://:s3cr@db1\"\r\n", "tcp db1:6379 db=0 :s3cr", "redis://db1:6379"},
		{"'rediss+sentinel://s1/main\n'", "master main at s1:26379 db=0 tls=s1", "rediss+sentinel://s1:26379/main"},
		{"\ufeffredis://db1", "tcp db1:6379 db=0", "redis://db1:6379"},
	} {
		a, err := Parse(c.url)
		if err != nil {
			t.Errorf("%q: %v", c.url, err)
			continue
		}
		if got := read(a); got != c.want {
			t.Errorf("%q is read as\n%s, want\n%s", c.url, got, c.want)
		}
		if a.String() != c.shown {
			t.Errorf("%q is printed as %s, want %s", c.url, a, c.shown)
		}
	}
}

// What cannot be meant, or can be meant in two ways, is refused with what to write. The error has the scheme that was
// written, and no part of a password.
func TestURLsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"", "not a URL such as redis://localhost:6379"},
		{"db1:6379", "not a URL such as"},
		{"app:s3cr@db1:6379", "not a URL such as"},
		{"redis:/app:s3cr@db1", "not a URL such as"},
		{"redis//:s3cr@db1", "not a URL such as"},
		{"/run/redis.sock", "not a URL such as"},
		{"s3cr://db1", "begins with redis://, rediss://"},
		{"HOLDFAST_URL=redis://:s3cr@db1", "begins with redis://"},
		{"redis-cli -u redis://:s3cr@db1", "begins with redis://"},
		{"http://:s3cr@db1", "http://…: write redis://"},
		{"tcp://:s3cr@db1", "tcp://…: write redis://"},
		{"sentinel://s1;sentinel://s2", "sentinel://…: write redis+sentinel://HOST:26379/MASTER"},
		{"redis://a:6379,b:6379", "redis://a:6379,b:6379: these are several URLs: write redis+cluster://"},
		{"redis://a,redis://b", "redis://…: these are several URLs: write redis+cluster://"},
		{"redis://:s3cr@a,redis://:s3cr@b", "redis://…: these are several URLs"},
		{"redis+cluster://a,redis+cluster://b", "redis+cluster://…: these are several URLs"},
		{"redis+cluster://a,,b", "a host is missing"},
		{"redis+cluster://a,", "a host is missing"},
		{"redis+cluster://:s3cr@a,:s3cr@b", "redis+cluster://…: write the user and the password once"},
		{"redis+sentinel://app:s3cr@a,app:s3cr@b/main", "redis+sentinel://…: write the user and the password once"},
		{"redis+cluster://a/2", "a cluster has no databases but 0"},
		{"redis+cluster://a/s3cr", "a cluster has no databases but 0"},
		{"redis://db1/main", "the number of a database"},
		{"redis://db1/1/2", "the number of a database"},
		{"redis://db1/-1", "the number of a database"},
		{"redis://db1?db=s3cr", "the option db"},
		{"redis://db1?db=-1", "the option db is the number of a database"},
		{"redis://db1?pool_size=s3cr", "redis://db1:6379: the value of the option pool_size"},
		{"redis://db1?read_timeout=s3cr", "the value of the option read_timeout"},
		{"redis://db1#s3cr", "in a password write %23"},
		{"redis://db1?s3cr=1", "an option after the ? is not known"},
		{"redis://db1?password=s3cr", "a user and a password stand before the host"},
		{"redis://db1?master_name=main", "Sentinels are redis+sentinel://HOST:26379/MASTER"},
		{"redis://db1?addr=b:1", "several servers are redis+cluster://"},
		{"redis://db1?ssl=true", "TLS is rediss://"},
		{"rediss://db1?ssl_cert_reqs=none", "--ca, --cert and --key"},
		{"redis://db1?skip_verify=true", "skip_verify needs TLS: write rediss://"},
		{"redis+cluster://db1?skip_verify=true", "skip_verify needs TLS: write rediss+cluster://"},
		{"rediss://db1?skip_verify=s3cr", "skip_verify is true or false"},
		{"redis://::1", "an IPv6 address is written in brackets"},
		{"redis://db1:70000", "a port is a number from 1 to 65535"},
		{"redis://app:s3cr", "redis://…: it cannot be read"},
		{"redis://app:s3/cr@db1", "redis://…: it cannot be read; in a password"},
		{"redis://app:6379/s3cr@db1", "redis://…: it cannot be read; in a password"},
		{"rediss+cluster://:s3?cr@db1", "rediss+cluster://…: it cannot be read"},
		{"redis://:s3%zzcr@db1", "redis://…: it cannot be read"},
		{"redis://:s3 cr@db1", "redis://…: it cannot be read"},
		{"redis://:s3\ncr@db1", "redis://…: it cannot be read"},
		{"unix://run/redis.sock", "write three slashes"},
		{"unix://:s3/cr@/run/redis.sock", "write three slashes"},
		{"unix://", "the path of the socket is missing"},
		{"rediss+socket:///run/redis.sock", "write redis+socket:///"},
		{"redis+sentinel://s1,s2", "redis+sentinel://s1:26379,s2:26379: the name of the master is missing: redis+sentinel://HOST:26379/MASTER"},
		{"redis+sentinel://main@s1", "the name of the master is missing"},
		{"redis+sentinel://s1/0", "the name of the master is missing"},
		{"redis+sentinel://s1/main?master=other", "it names two masters"},
		{"redis+sentinel://s1/a/b", "it names two masters"},
		{"redis+sentinel://s1/main/0/1", "/MASTER/0"},
		{"redis+sentinel://:s3crA@s1/main?password=s3crB&sentinel_password=s3crC", "leave out one of the three"},
		{"redis+sentinel://s1/main?password=a&s3cr=b", "written %3F %26"},
		{"redis+sentinel://s1/main?route_by_latency=true", "locks are at the master"},
		{"redis+sentinel://s1/main?replica_only=true", "locks are at the master"},
	} {
		a, err := Parse(c.url)
		if err == nil {
			t.Errorf("%q is read as %s", c.url, read(a))
			continue
		}
		text := err.Error()
		if !strings.Contains(text, c.want) {
			t.Errorf("%q: %s\nwant %s", c.url, text, c.want)
		}
		if strings.Contains(text, "s3") || strings.Contains(text, "cr@") || strings.Contains(text, "\n") {
			t.Errorf("%q: %s", c.url, text)
		}
	}
}

// A password that is not escaped makes no URL, or another one than was meant. No part of it is printed, whatever
// character it has, and however the URL is read.
func TestNoPartOfAPasswordIsPrinted(t *testing.T) {
	for scheme := range schemes() {
		for _, user := range []string{"", "app"} {
			for _, first := range []string{"Zm9v", "6379"} {
				for _, odd := range []string{"/", "?", "#", "%zz", "/0?", ":", "\x7f", " ", ",", "&", "=", "@", "://", ",redis://"} {
					for _, end := range []string{"@127.0.0.1:6379", "@127.0.0.1:1,b:2/main", "@/run/x", ""} {
						target := scheme + "://" + user + ":" + first + odd + "YmFy" + end
						a, err := Parse(target)
						said := fmt.Sprint(err)
						if err == nil {
							said = a.String() + a.Like("+cluster")
						}
						if end != "" && strings.Contains(said, "YmFy") || strings.Contains(said, "Zm9v") {
							t.Errorf("%q: %s", target, said)
						}
					}
				}
			}
		}
	}
}

// What a Client is made of is what was parsed, and a Client does not change it: there are two of each.
func TestClientsOfOneAddress(t *testing.T) {
	for _, url := range []string{"rediss://:p@a/1", "rediss+cluster://:p@a,b", "rediss+sentinel://:p@a,b/main"} {
		a, err := Parse(url)
		redistest.Must(t, err)
		a.TLS().ServerName = "other"
		before := read(a)
		for range 2 {
			c := a.Client()
			var config *tls.Config
			switch c := c.(type) {
			case *redis.Client:
				config = c.Options().TLSConfig
			case *redis.ClusterClient:
				config = c.Options().TLSConfig
			}
			if config == nil || config.ServerName != "other" {
				t.Errorf("%s: %v", url, config)
			}
			_ = c.Close()
		}
		redistest.Equal(t, read(a), before, "%s, was %s (%s)", before, url)
	}
}
