// Each error that a server may answer with, in each form in which a server writes it, is read the same.

package fault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// forms are how servers write an error that a script has met.
var forms = map[string]string{
	"alone":                        "%s",
	"Redis 7":                      "%s script: 58fb04a, on @user_script:15.",
	"Valkey 9":                     "%s script: on @user_script:15.",
	"Redis 6, raised":              "ERR Error running script (call to f_58fb): @user_script:15: @user_script: 15: -%s",
	"Redis 6, raised by itself":    "ERR Error running script (call to f_58fb): @user_script:15: %s",
	"Redis 6, returned":            "@user_script: 154: -%s",
	"Redis 6, returned and raised": "@user_script: 154: @user_script: 154: -%s",
	"miniredis":                    "ERR Error compiling script (new function): <string>:15: %s",
}

// A call that was refused waits for what passes, and a clean-up also for what an operator mends. The
// error says why, and not where in the script.
func TestEachRefusalInEachForm(t *testing.T) {
	for text, want := range map[string]struct {
		ends     Remedy
		sentinel error
	}{
		"LOADING Redis is loading the dataset in memory":                                                   {Passage, nil},
		"READONLY You can't write against a read only replica.":                                            {Passage, nil},
		"TRYAGAIN Multiple keys request during rehashing of slot":                                          {Passage, nil},
		"CLUSTERDOWN The cluster is down":                                                                  {Passage, nil},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                 {Passage, nil},
		"NOREPLICAS Not enough good replicas to write.":                                                    {Passage, nil},
		"BUSY Redis is busy running a script.":                                                             {Passage, nil},
		"UNBLOCKED client unblocked via CLIENT UNBLOCK":                                                    {Passage, nil},
		"ERR max number of clients reached":                                                                {Passage, nil},
		"ERR max number of clients + cluster connections reached":                                          {Passage, nil},
		"ERR Script attempted to access a non local key in a cluster node":                                 {Passage, nil},
		"ERR Attempted to access a non local key in a cluster node":                                        {Passage, nil}, // Valkey 9
		"ERR Script attempted to execute a write command while the cluster is down and readonly":           {Passage, nil},
		"ERR Can not execute a write command 'set' while the cluster is down and readonly":                 {Passage, nil}, // Valkey 9
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.": {Operator, nil},
		"OOM command not allowed when used memory > 'maxmemory'.":                                          {Operator, errs.OutOfMemory},
		"NOPERM User u has no permissions to run the 'evalsha' command":                                    {Operator, errs.Denied},
		"NOAUTH Authentication required.":                                                                  {Operator, errs.Denied},
		"WRONGPASS invalid username-password pair or user is disabled.":                                    {Operator, errs.Denied},
		"DENIED Redis is running in protected mode because protected mode is enabled":                      {Operator, errs.Denied},
		"ERR The user executing the script can't run this command or subcommand":                           {Operator, errs.Denied}, // Redis 7.0
		"ERR The user executing the script can't publish to the channel mentioned in the command":          {Operator, errs.Denied},
		"ERR invalid password": {Operator, errs.Denied},
		"ERR ACL failure in script: User u has no permissions to run the 'pttl' command": {Operator, errs.Denied},
		"WRONGTYPE Operation against a key holding the wrong kind of value":              {nothing, errs.WrongType},
		"NOPERMITS never set": {nothing, errs.NoPermits},
		"CROSSSLOT Keys in request don't hash to the same slot": {nothing, nil},
		"ERR Unknown Redis command called from script":          {nothing, nil},
		"ERR value is not an integer or out of range":           {nothing, nil},
		"ERR Wrong number of args calling command from script":  {nothing, nil},
	} {
		for form, as := range forms {
			err := serverError(fmt.Sprintf(as, text))
			if form == "miniredis" && (want.sentinel == nil || text[:3] == "ERR") && want.ends != Passage {
				continue // it cannot have these
			}
			redistest.Equal(t, RemedyOf(err), want.ends, "%v ends it, want %v (%s, %q)", want.ends, form, err)
			if got := Judge(err); (got == Again) != (want.ends == Passage) {
				t.Errorf("%s, %q: verdict %v", form, err, got)
			}
			for what, err := range map[string]error{"": err, "before anything was sent": Unsent{Err: err}, "and typed": Typed(err, "")} {
				if got := CleanUpOutlasts(err); got != (want.ends == Operator || what == "before anything was sent") {
					t.Errorf("%s %s, %q: a clean-up goes on: %v", form, what, err, got)
				}
			}
			said := Typed(err, "")
			if want.sentinel != nil && !errors.Is(said, want.sentinel) {
				t.Errorf("%s, %q does not match %q", form, said, want.sentinel)
			}
			if words := text; form != "miniredis" && said.Error() != words && said.Error() != fmt.Sprintf("%v: %s", want.sentinel, words) {
				t.Errorf("%s, %q: %q", form, err, said)
			}
		}
	}
}

// A connection that one side refuses for the other's certificate cannot be made, however often one tries; nor can one of
// a client that was closed.
func TestWhatNoRetryMends(t *testing.T) {
	for _, err := range []error{
		&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, x509.UnknownAuthorityError{},
		x509.HostnameError{Certificate: new(x509.Certificate)}, x509.CertificateInvalidError{}, tls.RecordHeaderError{},
		&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
		redis.ErrClosed, errs.BadArgument,
	} {
		unmade := Unreached{err}
		if got := Judge(unmade); got != Final || Judge(Unreached{net.ErrClosed}) != Again {
			t.Errorf("%T: verdict %v", err, got)
		}
		if said := Typed(unmade, ""); !errors.Is(said, errs.Unavailable) || !errors.Is(said, err) {
			t.Errorf("%T: %v", err, said)
		}
		if mends := err != redis.ErrClosed && err != errs.BadArgument; Mendable(unmade) != mends {
			t.Errorf("%T: an operator can mend it: %v", err, !mends)
		}
	}
}

// serverError is an error reply with these words.
type serverError string

func (e serverError) Error() string { return string(e) }
func (e serverError) RedisError()   {}
