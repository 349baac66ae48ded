// The options of a Client.

package holdfast

import (
	"log/slog"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Option configures a Client.
type Option func(*config)

type config struct {
	defaults  []lease.Option
	mapName   func(string) string
	keyPrefix string
	log       *slog.Logger
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	group     func(string) string
	identity  string
}

// WithDefaults sets lease options for all synchronizers of the Client. If an option is also given to a
// factory method, such as Client.Mutex, the option of the factory method counts. The default is a renewed
// lease of 30 s. Leader and Shards use only these defaults: the length of the lease, Grace and Replicas.
// Barrier uses only the length.
func WithDefaults(options ...lease.Option) Option {
	return func(c *config) { c.defaults = append(c.defaults, options...) }
}

// WithReplicas is the same as WithDefaults(Replicas(n)).
func WithReplicas(n int) Option { return WithDefaults(lease.Replicas(n)) }

// WithTokenLife sets how long Redis keeps the fencing token of a name after this Client's last grant of
// that name. Use it for programs with very many names, because each name that was used takes about 150
// bytes in Redis for that long. If d is 0, and by default, it is 7 days. The minimum is 1 hour: if d is
// less, each Lock fails with ErrBadArgument. WithTokenLife applies to Mutex, FairMutex, RWMutex, Striped,
// Slots, Shards, and the members of a Quorum. It does not change other tokens: a Leader's tokens are kept
// for 7 days, a Once's tokens for 24 hours, and tokens with JavaTokens for ever. PermitSemaphore,
// Semaphore, Latch and Barrier have no tokens in Redis.
//
// Tokens grow even if Redis has forgotten the last one, because each token is at least as great as Redis's
// clock at the grant. A token can be smaller than a forgotten one only if the clock was set back by more
// than d minus 17 minutes: see docs/decisions/0062-an-option-for-the-life-of-tokens.md.
func WithTokenLife(d time.Duration) Option {
	return WithDefaults(func(s *hold.Settings) { s.TokenLife = d })
}

// WithNameMapper sets the function that makes the names in Redis from the program's names, for example by
// adding a prefix. mapName must always return the same result for a name. All processes that are to exclude
// each other must map names in the same way. By default names stay as they are. WithNameMapper corresponds
// to Redisson's nameMapper.
func WithNameMapper(mapName func(name string) string) Option {
	return func(c *config) { c.mapName = mapName }
}

// WithKeyPrefix makes every key and every channel of the Client begin with prefix. If several programs
// share a Redis, the ACL rule "~app:* &app:*" is then enough for every kind of synchronizer: see
// docs/connecting.md. By default there is no prefix. WithNameMapper, in contrast, changes only names, so
// other keys still begin with fixed words, such as redisson_lock_token. With both options, the prefix comes
// before the name that the mapper returns. For example, with the prefix "app:" the lock "orders" is at
// app:orders, and its token is at app:redisson_lock_token:{app:orders}.
//
// All processes that are to exclude each other must give the same prefix, and no other keys should begin
// with it. Redisson has no such prefix. So do not use WithKeyPrefix for names that a Java program shares.
// With a prefix, a lock with JavaTokens fails with ErrBadArgument. Every call of the Client fails with
// ErrBadArgument if the prefix has a brace, which would decide the slots of a cluster, or begins with
// "holdfast_" or like the keys of Redisson.
//
// Errors, logs, spans, Inspect and InspectAll show names without the prefix.
func WithKeyPrefix(prefix string) Option {
	return func(c *config) { c.keyPrefix = prefix }
}

// WithIdentity makes the Client say in Redis who it is, for example "billing-7f9c/pid 12". Then Inspect and
// Monitor, in any process, show this text with everything that the Client holds or waits for. Everybody who
// may read the keys holdfast_client:{holdfast}:* of this Redis can read the text. With WithKeyPrefix, these
// keys begin with the prefix. By default, and if who is "", the Client writes nothing, because the name of
// a host may be a secret. Only the first 256 bytes of who are kept.
//
// The identity is stored in one key for each Client. The Client writes the key in the background, together
// with its renewals: when the Client first asks for a lock or for leased permits, and then once a minute
// while the Client is in use. If a write fails, locks work without the identity. Close deletes the key,
// except when something that the Client held stays in Redis. If Close has not deleted the key, it expires
// an hour after the last write. See docs/inspect.md.
func WithIdentity(who string) Option {
	return func(c *config) { c.identity = who }
}

// WithLogger sets the logger. Holdfast logs these events: a lease was lost, with the cause that its holder
// gets; a renewal failed for the first time, or works again; Redis has not answered a call for a second;
// Holdfast has given up a clean-up; a subscription failed. If a fixed lease ends as agreed, Holdfast does
// not log it. By default, and if log is nil, nothing is logged. No line has a whole owner id or a password.
//
// One goroutine calls the log handler, for one line after another. No lock, renewal or message waits for
// the handler. Close waits for the handler for at most 1.6 s. While the handler blocks, up to 16384 lines
// wait, and further lines are dropped. If the handler panics, the line is dropped too. The next line says
// how many lines were dropped.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) {
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		c.log = log
	}
}

// WithTracerProvider sets the provider with which Holdfast traces acquisitions and releases. By default,
// and if tp is nil, Holdfast does not trace, because it never uses the global provider. Spans begin and end
// on the goroutine that locks or releases, which waits for the provider. If the provider
// panics, that span is not recorded.
func WithTracerProvider(tp trace.TracerProvider) Option {
	return func(c *config) {
		if isNil(tp) {
			tp = nil
		}
		c.tracers = tp
	}
}

// WithMeterProvider sets the provider with which Holdfast records metrics. By default, and if mp is nil,
// Holdfast records no metrics, because it never uses the global provider. The goroutine that makes a call
// records the values of the call. A separate goroutine records renewals, losses and reconnects, and nothing
// waits for that goroutine. If an instrument panics, that value is not recorded.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return func(c *config) {
		if isNil(mp) {
			mp = nil
		}
		c.meters = mp
	}
}

// WithMetricGroup adds the attribute holdfast.group to the metrics that have holdfast.kind. The value of
// the attribute is what group returns for the name, for example "orders" for "orders:42". Use it to learn
// which of your locks are busy if you have too many names for a metric series of each name. By default, and
// if group is nil, there is no such attribute.
//
// A Client distinguishes the first 20 groups, and counts the names of all further groups as "other". A name
// also counts as "other" if group panics for it, or returns more than 64 bytes or invalid UTF-8. If group
// returns "", the attribute is left out. Each group adds as many metric series as there would be without
// groups. So use few groups.
//
// group gets the name as the program uses it, before WithNameMapper. For a lock that Monitor reports, group
// gets the name as it is in Redis. Each acquisition, Attach and Observe calls group on the goroutine that
// asks for the lock. Several goroutines may call group at the same time. If group blocks, only that call
// waits. group should be fast, and should always return the same for a name. Without WithMeterProvider,
// group is not called. It is also not called for a MultiLock as a whole, because a MultiLock has no name of
// its own.
func WithMetricGroup(group func(name string) string) Option {
	return func(c *config) { c.group = group }
}

// isNil reports whether v is nil, or a nil pointer in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	pointer := reflect.ValueOf(v)
	return pointer.Kind() == reflect.Pointer && pointer.IsNil()
}

// LeaseOption configures how a lock or a permit is held. It is the same type as lease.Option.
type LeaseOption = lease.Option

// Renewed makes Holdfast renew a lease every third of d until the lease is released or lost. The default is
// Renewed with 30 s. See lease.Renewed.
func Renewed(d time.Duration) LeaseOption { return lease.Renewed(d) }

// Fixed makes a lease end d after it was granted, without renewal. See lease.Fixed.
func Fixed(d time.Duration) LeaseOption { return lease.Fixed(d) }

// Notified notifies the holder of a lock at once if somebody releases the lock by force. See
// lease.Notified.
func Notified() LeaseOption { return lease.Notified() }

// Supersede makes the newest Lock win: the holder's lease ends when a newer Lock comes. See
// lease.Supersede.
func Supersede() LeaseOption { return lease.Supersede() }

// Grace makes a lease end d before anybody else can get the lock. The default is 0. See lease.Grace.
func Grace(d time.Duration) LeaseOption { return lease.Grace(d) }

// MaxHold ends a lease that has been held for d. By default there is no such limit. See lease.MaxHold.
func MaxHold(d time.Duration) LeaseOption { return lease.MaxHold(d) }

// Replicas makes a grant or a renewal count only after n replicas have it. The default is 0. See
// lease.Replicas.
func Replicas(n int) LeaseOption { return lease.Replicas(n) }

// Cohort limits how often, and for how long, the goroutines of a process pass a Mutex to each other without
// asking Redis. The default is 1000 times or 10 ms, whichever comes first. See lease.Cohort.
func Cohort(n int, d time.Duration) LeaseOption { return lease.Cohort(n, d) }

// JavaTokens makes a lock and Redisson's RFencedLock of the same name share their fencing tokens. See
// lease.JavaTokens.
func JavaTokens() LeaseOption { return lease.JavaTokens() }
