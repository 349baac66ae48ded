// The errors of Redis are explained in words, with the right addresses.

package fault

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestARedirectionMayNameAnIPv6Address(t *testing.T) {
	for text, want := range map[string]string{
		"MOVED 3999 127.0.0.1:6381":           "127.0.0.1:6381",
		"MOVED 3999 redis-1.example.com:6381": "redis-1.example.com:6381",
		"ASK 3999 fd00::5:6379":               "[fd00::5]:6379",
		"MOVED 3999 2001:db8::1:6379":         "[2001:db8::1]:6379",
		"ASK 3999 ::1:7001":                   "[::1]:7001",
		"MOVED 1 [::1]:7001":                  "[::1]:7001",
		"MOVED 1 :7001":                       "[fd00::4]:7001", // the reply names no host
	} {
		redistest.Equal(t, Redirection(errors.New(text), "[fd00::4]:6379"), want, "%s, want %s (%s)", want, text)
	}
	redistest.Equal(t, Redirection(errors.New("ASK 1 :7001"), "redis-2:6379"), "redis-2:7001", "no host: %s, want redis-2:7001")
}

func TestAnErrorInAScriptIsToldWithoutThePlaceInTheScript(t *testing.T) {
	const script = "local a = 1\nredis.call('time')\nredis.call('hset', KEYS[1], 'a', redis.call('get', 'b'))\n"
	for text, want := range map[string]string{
		"WRONGTYPE Operation against a key script: 58fb04a, on @user_script:15.":                                          "WRONGTYPE Operation against a key",
		"ERR Error running script (call to f_58fb): @user_script:15: @user_script: 15: -OOM command not allowed":          "OOM command not allowed",
		"ERR Error running script (call to f_58fb): @user_script:15: WRONGTYPE Operation against a key":                   "WRONGTYPE Operation against a key",
		"ERR The user executing the script can't run this command or subcommand script: 58fb, on @user_script:2.":         "ERR The user executing the script can't run this command or subcommand ('time')",
		"ERR The user executing the script can't run this command or subcommand script: 58fb, on @user_script:3.":         "ERR The user executing the script can't run this command or subcommand ('hset' or 'get')",
		"ERR ACL failure in script: User u has no permissions to run the 'incr' command script: 58fb, on @user_script:2.": "ERR ACL failure in script: User u has no permissions to run the 'incr' command",
		"ERR Unknown Redis command called from script script: 58fb, on @user_script:2.":                                   "ERR Unknown Redis command called from script ('time')",
		"ERR Unknown Redis command called from script ('PEXPIRE')":                                                        "ERR Unknown Redis command called from script ('pexpire')",
		"@user_script: 12: Unknown Redis command called from Lua script ('PEXPIRE')":                                      "Unknown Redis command called from Lua script ('pexpire')",
		"OOM command not allowed when used memory > 'maxmemory'. ('PEXPIRE')":                                             "OOM command not allowed when used memory > 'maxmemory'.",
		"NOPERM User u has no permissions to run the 'evalsha' command":                                                   "NOPERM User u has no permissions to run the 'evalsha' command",
	} {
		err := Explained(fmt.Errorf("%w", serverError(text)), script)
		if err.Error() != want {
			t.Errorf("%s: %q, want %q", text, err, want)
		}
		if !IsReply(err) {
			t.Errorf("%s: is no reply any more", text)
		}
	}
}
