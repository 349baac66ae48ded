// The commands reach Redis with certificates and passwords, and say why they do not.

package operators

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// attempt is a command line with the variables that are set for it, and what comes of it.
type attempt struct {
	variables map[string]string
	args      []string
	code      int
	want      string
}

// try runs attempts side by side, each in a process of its own. It fails the test for each that comes to something
// else, or prints one of the secrets.
func try(t *testing.T, secrets []string, all ...attempt) {
	t.Helper()
	t.Run("attempts", func(t *testing.T) { // it ends when all of them have
		for _, a := range all {
			t.Run(strings.Join(append(a.args, fmt.Sprint(a.variables)), " "), func(t *testing.T) {
				redistest.Parallel(t)
				a.try(t, secrets)
			})
		}
	})
}

func (a attempt) try(t *testing.T, secrets []string) {
	d := apart(t, a.variables, a.args...)
	d.want(t, a.code, a.want)
	if strings.Count(d.out, "holdfast: ") > 1 {
		t.Errorf("more than one line:\n%s", d.out)
	}
	for _, secret := range secrets {
		if strings.Contains(d.out, secret) {
			t.Errorf("%s has a password", d.out)
		}
	}
}

// apart runs the holdfast command as a process: run ends threads of its own, and with them what they have started,
// such as the servers of a test. What it prints is in out.
func apart(t *testing.T, variables map[string]string, args ...string) (d done) {
	t.Helper()
	for child := startWith(t, variables, args...); ; {
		line := child.Line()
		if code, ended := strings.CutPrefix(line, "exit "); ended {
			redistest.Must(t, redistest.Err(fmt.Sscan(code, &d.code)))
			return d
		}
		d.out += line + "\n"
	}
}

// file writes a file, and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	redistest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A server as redis-server is by default with TLS: it wants a certificate of its own authority. Without each of the
// flags the message names the flag that is missing.
func TestReachTLS(t *testing.T) {
	authority := redistest.NewAuthority(t)
	server, addr := redistest.TLSServer(t, authority, "--tls-auth-clients", "yes", "--appendonly", "yes")
	authority.Issue("operator")
	ca, cert, key := authority.Path("ca.crt"), authority.Path("operator.crt"), authority.Path("operator.key")
	var both strings.Builder
	for _, path := range []string{key, cert} {
		text, err := os.ReadFile(path)
		redistest.Must(t, err)
		both.Write(text)
	}
	secure, plain := "rediss://"+addr, url(server)
	flags := []string{"--url", secure, "--ca", ca, "--cert", cert, "--key", key}
	flags = slices.Clip(flags)
	try(t, nil, attempt{nil, append(flags, "run", "a", "--", "true"), 0, ""})
	try(t, nil, attempt{nil, append(flags, "acquire", "a", "--lease", "10m", "--as", "job 1"), 0, "HOLDFAST_LOCK="})
	try(t, nil, []attempt{
		{nil, append(flags, "ls"), 0, "job 1"},
		{nil, append(flags, "inspect", "a"), 0, "job 1"},
		{nil, append(flags, "check"), 0, ""},
		{map[string]string{
			"HOLDFAST_URL": secure, "HOLDFAST_CA": ca, "HOLDFAST_CERT": cert, "HOLDFAST_KEY": key,
		}, []string{"ls"}, 0, "job 1"},
		{nil, []string{"--url", secure, "--ca", ca, "--cert", file(t, both.String()), "ls"}, 0, "job 1"},
		{nil, append(flags, "--server-name", "::1", "ls"), 0, "job 1"},
		{nil, append(flags, "--server-name", "other", "ls"), 69, "--server-name"},
		{map[string]string{"HOLDFAST_SERVER_NAME": "other"}, append(flags, "ls"), 69, "--server-name"},
		{nil, []string{"--url", secure, "--cert", cert, "--key", key, "ls"}, 69, "(--ca"},
		{nil, []string{"--url", secure, "--ca", ca, "ls"}, 69, "(--cert"},
		{nil, []string{"--url", secure, "--insecure", "--cert", cert, "--key", key, "check"}, 0, "is not verified"},
		{map[string]string{"HOLDFAST_INSECURE": "1"}, []string{"--url", secure, "--cert", cert, "--key", key, "check"}, 0, "is not verified"},
		{map[string]string{"HOLDFAST_INSECURE": "perhaps"}, []string{"--url", secure, "ls"}, 64, "HOLDFAST_INSECURE is true or false"},
		{nil, []string{"--url", secure, "--ca", key, "ls"}, 64, "has no certificate"},
		{nil, []string{"--url", secure, "--ca", "", "ls"}, 64, "--ca is empty"},
		{nil, []string{"--url", secure, "--key", key, "ls"}, 64, "--key goes with --cert"},
		{nil, []string{"--url", "", "ls"}, 64, "--url is empty"},
		{nil, []string{"--url", plain, "--ca", ca, "ls"}, 64, "--ca needs TLS"},
		{map[string]string{"HOLDFAST_CA": ca}, []string{"--url", plain, "ls"}, 64, "HOLDFAST_CA needs TLS"},
		{nil, append(flags, "--url", "rediss://"+server.Addr(), "--timeout", "1s", "ls"), 69, "(if it speaks no TLS"},
		{nil, []string{"--url", "redis://" + addr, "--timeout", "3s", "ls"}, 69, "begins with rediss"},
	}...)
	listed(t, start(t, server, append(flags, "console", "--listen", "127.0.0.1:0")...), "a")
}

// passwords gives a server a password, from now on: the connections of the servers with each other go on.
func passwords(t *testing.T, addr, password string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	redistest.Must(t, c.Do(t.Context(), "ACL", "SETUSER", "default", ">"+password).Err())
}

// Redis and its Sentinels have a password each. Whichever is refused, the message says whose it is.
func TestReachSentinelsWithTwoPasswords(t *testing.T) {
	redistest.Parallel(t)
	set := redistest.Sentinel(t)
	master, sentinels := set.Master(), set.SentinelAddrs()
	list := strings.Join(sentinels, ",")
	run(t, master, "--url", "redis://"+sentinels[0], "ls").want(t, 64,
		"is a Sentinel: write redis+sentinel://"+sentinels[0]+"/"+redistest.MasterName)
	for _, node := range set.Nodes() {
		passwords(t, node.Addr(), "k9Redis")
	}
	for _, addr := range sentinels {
		passwords(t, addr, "k9Watch")
	}
	forms := []string{
		"redis+sentinel://" + list + "/" + redistest.MasterName + "?password=k9Redis&sentinel_password=k9Watch",
		"redis+sentinel://default:k9Redis@" + list + "/" + redistest.MasterName + "?sentinel_password=k9Watch",
		"redis+sentinel://:k9Watch@" + sentinels[0] + "?master_name=" + redistest.MasterName + "&password=k9Redis&addr=" + sentinels[1],
		"redis-sentinel://:k9Redis@" + list + "?sentinel_password=k9Watch#" + redistest.MasterName,
	}
	everywhere(t, master, forms[0])
	bare := "redis+sentinel://" + list + "/" + redistest.MasterName
	var all []attempt
	for _, form := range forms {
		all = append(all, attempt{nil, []string{"--url", form, "ls"}, 0, "job d"})
	}
	for _, command := range [][]string{{"ls"}, {"check"}, {"watch"}, {"inspect", "d"}, {"run", "d", "--", "true"}} {
		all = append(all,
			attempt{nil, append(command[:1:1], append([]string{"--url", bare}, command[1:]...)...), 77, "the Sentinels at " + bare + " want a password: give it by HOLDFAST_SENTINEL_PASSWORD"},
			attempt{nil, append(command[:1:1], append([]string{"--url", bare + "?sentinel_password=k9Watch"}, command[1:]...)...), 77, "Redis at " + bare + " wants a password: give it by HOLDFAST_PASSWORD"})
	}
	try(t, []string{"k9Redis", "k9Watch"}, append(all, []attempt{
		{map[string]string{"HOLDFAST_PASSWORD": "k9Redis", "HOLDFAST_SENTINEL_PASSWORD": "k9Watch"}, []string{"--url", bare, "ls"}, 0, "job d"},
		{map[string]string{"HOLDFAST_PASSWORD": "k9Redis"}, []string{"--url", bare, "--sentinel-password-file", file(t, "k9Watch\n"), "ls"}, 0, "job d"},
		{
			map[string]string{"HOLDFAST_PASSWORD_FILE": file(t, "k9Redis\r\n"), "HOLDFAST_SENTINEL_PASSWORD_FILE": file(t, "k9Watch")},
			[]string{"--url", bare, "ls"}, 0, "job d",
		},
		{nil, []string{"--url", bare + "?password=k9Watch&sentinel_password=k9Redis", "ls"}, 77, "the Sentinels at " + bare + " refuse the user or the password"},
		{nil, []string{"--url", bare + "?password=k9Watch&sentinel_password=k9Watch", "check"}, 77, "Redis at " + bare + " refuses the user or the password"},
		{nil, []string{"--url", "redis+sentinel://" + list + "/other?sentinel_password=k9Watch", "ls"}, 64, "know no master of that name"},
		{nil, []string{"--url", "redis+sentinel://:k9Redis@" + master.Addr() + "?master_name=x", "ls"}, 64, "there is no Sentinel at"},
		{nil, []string{"--url", forms[0], "--password-file", file(t, "k9Redis"), "ls"}, 64, "give one of the two"},
		{nil, []string{"--url", bare, "--password-file", file(t, "\n"), "ls"}, 64, "has no password"},
		{nil, []string{"--url", url(master), "--sentinel-password-file", file(t, "k9Watch"), "ls"}, 64, "goes with a URL of Sentinels"},
	}...)...)
}

// A part of the names would look like all of them.
func TestReachANodeOfACluster(t *testing.T) {
	redistest.Parallel(t)
	cluster := redistest.Cluster(t, 3, 0)
	node := cluster.Nodes()[0]
	whole := "redis+cluster://" + strings.Join(cluster.Addrs(), ",")
	everywhere(t, node, "redis+cluster://"+cluster.Addrs()[0])
	apart(t, nil, "--url", whole, "run", "x", "--", "true").want(t, 0)
	says := url(node) + " is one node of a cluster, which has a part of the names only: write redis+cluster://" + node.Addr() + "\n"
	var all []attempt
	for _, args := range [][]string{
		{"ls"}, {"watch"}, {"watch", "a"}, {"console", "--listen", "127.0.0.1:0"}, {"inspect", "a"}, {"check"}, {"run", "a", "--", "true"},
		{"leader", "a", "--", "true"}, {"acquire", "a", "--lease", "1m"}, {"release", "a", "--force", "--yes"}, {"latch", "show", "a"}, {"sem", "show", "a"},
		{"once", "show", "a", "b"}, {"run", "a", "--quorum", url(node) + "," + url(node) + "," + url(node), "--", "true"},
	} {
		all = append(all, attempt{nil, append([]string{"--url", url(node)}, args...), 64, says})
	}
	try(t, nil, all...)
	// A user that may not ask is refused by the first name that is elsewhere.
	redistest.Must(t, node.Admin().Do(t.Context(), "ACL", "SETUSER", "shy", "on", ">p", "~*", "&*", "+@all", "-info", "-cluster").Err())
	for _, name := range []string{"a", "b", "c", "d"} {
		d := run(t, node, "--url", "redis://shy:p@"+node.Addr(), "inspect", name)
		if d.code != 0 {
			d.want(t, 64, says)
			return
		}
	}
	t.Error("all of a, b, c and d are at one node")
}

// What is one server is used as one, whatever it says of itself.
func TestReachOneServerThatIsAllOfItsCluster(t *testing.T) {
	redistest.Parallel(t)
	cluster := redistest.Cluster(t, 1, 0)
	node := cluster.Nodes()[0]
	kept(t, run(t, node, "acquire", "a", "--lease", "10m"))
	run(t, node, "ls").want(t, 0, "a  ")
	single := redistest.Server(t)
	run(t, single, "--url", "redis+cluster://"+single.Addr(), "ls").want(t, 64, "belongs to no cluster: write "+url(single))
}

// A refusal of the password is no void promise (1), and no outage (69). Each command says it once.
func TestReachARefusedPassword(t *testing.T) {
	server := server(t)
	passwords(t, server.Addr(), "k9Redis")
	wrong := "redis://:k9Wrong@" + server.Addr()
	all := []attempt{
		{nil, []string{"run", "a", "--url", wrong, "--", "true"}, 77, "refuses the user"},
		{map[string]string{"HOLDFAST_PASSWORD": "k9Redis"}, []string{"run", "a", "--url", url(server), "--", "true"}, 0, ""},
		{map[string]string{"HOLDFAST_PASSWORD": "k9Wrong"}, []string{"ls", "--url", "redis://:k9Redis@" + server.Addr()}, 0, ""},
	}
	// What 1 is elsewhere must not say that nobody holds it.
	for _, command := range []string{"ls", "check", "watch", "console", "held a", "wait a"} {
		args := slices.Clip(strings.Fields(command))
		all = append(all,
			attempt{nil, append(args, "--url", wrong), 77, "refuses the user or the password"},
			attempt{nil, append(args, "--url", url(server)), 77, "wants a password: give it by HOLDFAST_PASSWORD"})
	}
	try(t, []string{"k9"}, all...)
}

// That nobody listens is another thing than silence: a wrong port, or a server that has ended.
func TestReachNobody(t *testing.T) {
	redistest.Needs(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	redistest.Must(t, err)
	silent := l.Addr().String()
	defer l.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	redistest.Must(t, err)
	closed := gone.Addr().String()
	gone.Close()
	all := []attempt{
		{nil, []string{"--url", "redis://" + closed, "ls"}, 69, "connection refused"},
		{nil, []string{"--url", "redis+cluster://" + closed, "ls"}, 69, "connection refused"},
		{nil, []string{"--url", "redis+sentinel://" + closed + "," + closed + "/main", "ls"}, 69, "connection refused"},
		{nil, []string{"--url", "unix:///nowhere/redis.sock", "ls"}, 69, "no such file"},
		{nil, []string{"--url", "redis://" + closed, "run", "a", "--", "true"}, 69, "connection refused"},
		{nil, []string{"--url", "redis://" + silent, "ls"}, 69, "was not reached within 2s\n"},
		{nil, []string{"--url", "redis+sentinel://" + silent + "/main", "ls"}, 69, "was not reached within 2s\n"},
	}
	for i := range all {
		all[i].args = append([]string{"--timeout", "2s"}, all[i].args...)
	}
	try(t, nil, all...)
}

// Two of three servers answer once the third is asked. If one were asked after the other, those two would count as
// out of reach.
func TestReachAQuorumAtOnce(t *testing.T) {
	asked := make(chan struct{})
	var urls []string
	for n := range 3 {
		proxy := redistest.Proxy(t, redistest.Server(t).Addr())
		var once bool
		proxy.OnCommand(func(redistest.Command) redistest.Fault {
			if n < 2 {
				return redistest.HoldReply(asked)
			}
			if !once {
				once = true
				close(asked)
			}
			return redistest.Pass
		})
		urls = append(urls, "redis://"+proxy.Addr())
	}
	attempt{nil, []string{"run", "x", "--quorum", strings.Join(urls, ","), "--", "true"}, 0, ""}.try(t, nil)
}

// The passwords of a quorum come from a file or a variable, and a quorum that refuses them all is no outage.
func TestReachAQuorumWithPasswords(t *testing.T) {
	var plain, whole []string
	for n := range 3 {
		server := server(t)
		passwords(t, server.Addr(), fmt.Sprintf("k9Pass%d", n))
		plain = append(plain, url(server))
		whole = append(whole, fmt.Sprintf("redis://:k9Pass%d@%s", n, server.Addr()))
	}
	quorum := func(flag, value string) []string { return []string{"run", "x", flag, value, "--", "true"} }
	for _, a := range []attempt{
		{nil, quorum("--quorum-file", file(t, "# these three\n"+strings.Join(whole, "\n\n")+"\n")), 0, ""},
		{nil, quorum("--quorum", strings.Join(whole, ",")), 0, ""},
		{nil, quorum("--quorum", strings.Join([]string{whole[0], whole[1], plain[2]}, ",")), 0, ""},
		{map[string]string{"HOLDFAST_PASSWORD": "k9Pass2"}, quorum("--quorum", strings.Join([]string{whole[0], plain[1], plain[2]}, ",")), 0, ""},
		{map[string]string{"HOLDFAST_PASSWORD": "k9Pass2"}, quorum("--quorum", strings.Join(plain, ",")), 77, "2 of 3 servers failed: Redis at "},
		{nil, quorum("--quorum", whole[0]+",redis:/:k9Pass1@x"), 64, ""},
		{nil, quorum("--quorum", ""), 64, "--quorum is empty"},
		{nil, quorum("--quorum-file", file(t, "\n")), 64, "it has no URL"},
		{nil, quorum("--quorum-file", "/nowhere"), 64, "no such file"},
	} {
		a.try(t, []string{"k9"}) // one after the other: they want one lock
	}
}
