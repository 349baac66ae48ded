package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/address"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// reply is an error that a server answers.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// What servers that no test here runs answer to a PING: old ones, proxies and Sentinels of which each says something
// else. The code is 0 if the library goes on with it, and -1 if it is tried again.
func TestWhatAnAnswerMeans(t *testing.T) {
	several := func(errs ...error) error {
		return fmt.Errorf("redis: connection pool: failed to dial: redis: all sentinels are unreachable: %w", errors.Join(errs...))
	}
	const server, cluster, sentinels = "redis://:k9Pass@a", "redis+cluster://:k9Pass@a,b", "redis+sentinel://:k9Pass@a,b/main"
	for _, c := range []struct {
		url  string
		err  error
		code int
		want string
	}{
		{server, reply("ERR invalid password"), 77, "Redis at redis://a:6379 refuses the user or the password"},
		{server, reply("ERR Client sent AUTH, but no password is set"), 77, "refuses a password, as none is configured there"},
		{server, reply("ERR AUTH <password> called without any password configured for the default user."), 77, "as none is configured"},
		{server, reply("WRONGPASS invalid username-password pair or user is disabled."), 77, "the user or the password"},
		{server, reply("NOPERM this user has no permissions to run the 'ping' command"), 0, ""},
		{server, reply("LOADING Redis is loading the dataset in memory"), 0, ""},
		{server, reply("ERR max number of clients reached"), 0, ""},
		{server, reply("ERR unknown command `HELLO`, with args beginning with: `2`, `auth`, `default`, `k9Pass`"), 0, ""},
		{cluster, reply("ERR This instance has cluster support disabled"), 64, "belongs to no cluster: write redis://a:6379"},
		{server, io.EOF, -1, "EOF (if it speaks TLS, the URL begins with rediss)"},
		{"rediss://a", io.EOF, -1, "EOF"},
		{sentinels, several(io.EOF, reply("WRONGPASS invalid")), 77, "the Sentinels at redis+sentinel://a:26379,b:26379/main refuse the user"},
		{sentinels, several(reply("NOPERM this user"), io.EOF), 77, "the Sentinels"},
		{sentinels, several(reply("ERR AUTH <password> called without any password configured"), io.EOF), 77, "if it is Redis's own, give it by HOLDFAST_PASSWORD"},
		{sentinels, several(reply("ERR unknown command 'sentinel', with args beginning with: 'get-master-addr-by-name' 'k9'"), io.EOF), 64, "there is no Sentinel at"},
		{sentinels, several(io.EOF, io.EOF), -1, "EOF (if it"},
		{sentinels, several(reply("ERR unknown command `AUTH`, with args beginning with: `k9Pass`"), io.EOF), 64, "no Sentinel"},
		{sentinels, several(reply("ERR what, with args beginning with: `k9Pass`"), io.EOF), -1, "EOF; ERR what (if"},
		{sentinels, reply("WRONGPASS invalid"), 77, "Redis at redis+sentinel://"},
	} {
		at, err := address.Parse(c.url)
		redistest.Must(t, err)
		final, err := judge(c.err, at)
		code, _ := codeOf(err)
		if !final {
			code, err = -1, because(c.err, at)
		}
		text := fmt.Sprint(err)
		if code != c.code || !strings.Contains(text, c.want) || strings.Contains(text, "k9") || strings.Contains(text, "\n") {
			t.Errorf("%s, %v: %d, %s", c.url, c.err, code, text)
		}
	}
}
