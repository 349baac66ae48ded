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

// WithDefaults sets lease options for all synchronizers of the Client. Options given to a factory
// method override them one by one. The default is Renewed(30 * time.Second). Leader and Shards take
// only the length, Grace and Replicas, and Barrier only the length.
func WithDefaults(options ...lease.Option) Option {
	return func(c *config) { c.defaults = append(c.defaults, options...) }
}

// WithReplicas is WithDefaults(Replicas(n)).
func WithReplicas(n int) Option { return WithDefaults(lease.Replicas(n)) }

// WithTokenLife sets how long Redis keeps the fencing token of a name after this Client's last grant of it.
// It is for programs that use very many names, because each used name leaves some 150 bytes for that long.
// The default, also for 0, is 7 days. The least is 1 hour; with less, each Lock fails with ErrBadArgument.
// It applies to Mutex, FairMutex, RWMutex, Striped, Slots, Shards, and the members of a Quorum. A Leader's
// tokens are kept for 7 days, a Once's for 24 hours, and JavaTokens keeps tokens for ever, whatever d is.
// PermitSemaphore, Semaphore, Latch and Barrier have no such key.
//
// Tokens grow even if one was forgotten, because no token is less than Redis's clock at its grant. A
// smaller token can follow a forgotten one only if the clock was set back by more than d minus 17 minutes:
// see docs/decisions/0062-an-option-for-the-life-of-tokens.md.
func WithTokenLife(d time.Duration) Option {
	return WithDefaults(func(s *hold.Settings) { s.TokenLife = d })
}

// WithNameMapper sets how the program's names become names in Redis, for example with a prefix.
// mapName must be pure, and all processes that are to exclude each other must map names alike. The
// default leaves names as they are. It is Redisson's nameMapper.
func WithNameMapper(mapName func(name string) string) Option {
	return func(c *config) { c.mapName = mapName }
}

// WithKeyPrefix makes every key and every channel of the Client begin with prefix. On a Redis that programs share, the
// usual ACL rule "~app:* &app:*" is then enough for every kind: see docs/connecting.md. The default is "": no prefix.
// WithNameMapper changes only names, not the beginnings of the keys beside them; with both options the prefix comes
// before what the mapper returns. The lock "orders" is at app:orders, and its token at
// app:redisson_lock_token:{app:orders}.
//
// All processes that are to exclude each other must give the same prefix, and no other keys should begin
// with it. Redisson has no such prefix: give none where Java shares a name. With a prefix, a lock with
// JavaTokens is refused with ErrBadArgument. If the prefix has a brace, which would decide the slots of a
// cluster, or begins with "holdfast_" or as Redisson's keys do, every call of the Client fails with
// ErrBadArgument.
//
// Errors, logs, spans, Inspect and InspectAll have names without the prefix.
func WithKeyPrefix(prefix string) Option {
	return func(c *config) { c.keyPrefix = prefix }
}

// WithIdentity makes the Client say in Redis who it is, for example "billing-7f9c/pid 12". Inspect and Monitor, in any
// process, then show this beside what the Client holds and waits for. Everybody who may read the key
// holdfast_client:{holdfast}:* of this Redis can read it (with WithKeyPrefix the prefix comes first). By default, and
// with "", the Client sends nothing, because the name of a host may be a secret. At most 256 bytes are kept.
//
// The identity is stored in one key for each Client. The Client writes it in the background, with its
// renewals, when it first asks for a lock or for leased permits, and once a minute while it is in use. If
// that fails, locks go on without it. Close removes it, unless something that was held stays in Redis.
// What Close has not removed expires an hour after the last write. See docs/inspect.md.
func WithIdentity(who string) Option {
	return func(c *config) { c.identity = who }
}

// WithLogger sets the logger. Holdfast logs a lost lease, with the cause that its holder gets; the
// first renewal that fails, and the first that works again; a call that Redis has not answered for
// a second; a clean-up that is given up; failures of subscriptions. A fixed lease that ends as
// agreed is not logged. By default, and with nil, nothing is logged. No line has a whole owner id
// or a password.
//
// One goroutine calls the handler, for one line after the other. No lock, renewal or message waits
// for the handler, and Close waits for it at most 1.6 s. While the handler blocks, up to 16384
// lines wait, and further lines are dropped. A line for which the handler panics is dropped too.
// The next line says how many were dropped.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) {
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		c.log = log
	}
}

// WithTracerProvider sets the provider with which Holdfast traces acquisitions and releases. By
// default, and with nil, there is none: Holdfast does not use the global provider. Spans begin and
// end on the goroutine that locks or releases, which waits for the provider. If the provider
// panics, that span is not recorded.
func WithTracerProvider(tp trace.TracerProvider) Option {
	return func(c *config) {
		if isNil(tp) {
			tp = nil
		}
		c.tracers = tp
	}
}

// WithMeterProvider sets the provider with which Holdfast records metrics. By default, and with nil, it
// records none: Holdfast does not use the global provider. The values of a call are recorded
// by the goroutine that makes the call. Renewals, losses and reconnects are recorded on a
// goroutine of their own, and nothing waits for it. If an instrument panics, that value is not
// recorded.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return func(c *config) {
		if isNil(mp) {
			mp = nil
		}
		c.meters = mp
	}
}

// WithMetricGroup adds the attribute holdfast.group to the metrics that have holdfast.kind. Its value is
// what group returns for the name, for example "orders" for "orders:42". It is for programs that want to
// know which of their locks are busy, and have too many names for a series each. By default, and with nil,
// there is no such attribute.
//
// A Client distinguishes the first 20 groups. Names of further groups are counted as "other". So are names for which
// group panics, or returns more than 64 bytes or invalid UTF-8. "" is no group: the attribute is left out. Each group
// adds as many series again, so use few.
//
// group gets the name as the program uses it, before WithNameMapper; but from Monitor, for each lock that it reports,
// the name as it is in Redis. Each acquisition, Attach and Observe calls group on the goroutine that asks for the
// lock. Several goroutines may call it at once. While it blocks, only that call waits. It should be fast, and always
// return the same for a name. It is not called without WithMeterProvider, nor for a MultiLock as a whole, which has no
// name of its own.
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

// LeaseOption configures how a lock or permit is held. It is lease.Option.
type LeaseOption = lease.Option

// Renewed makes Holdfast renew a lease every third of d until it is released or lost. It is the
// default, with 30 s. See lease.Renewed.
func Renewed(d time.Duration) LeaseOption { return lease.Renewed(d) }

// Fixed makes a lease end d after it was granted, without renewal. See lease.Fixed.
func Fixed(d time.Duration) LeaseOption { return lease.Fixed(d) }

// Notified notifies the holder of a lock at once that the lock was released by force. See
// lease.Notified.
func Notified() LeaseOption { return lease.Notified() }

// Supersede makes the newest Lock win. See lease.Supersede.
func Supersede() LeaseOption { return lease.Supersede() }

// Grace makes a lease end d before others can get what it holds. The default is 0. See lease.Grace.
func Grace(d time.Duration) LeaseOption { return lease.Grace(d) }

// MaxHold ends a lease that has been held for d. The default is off. See lease.MaxHold.
func MaxHold(d time.Duration) LeaseOption { return lease.MaxHold(d) }

// Replicas makes a grant or a renewal count only after n replicas have it. The default is 0.
// See lease.Replicas.
func Replicas(n int) LeaseOption { return lease.Replicas(n) }

// Cohort bounds how often, and for how long, a Mutex is passed on within a process without
// asking Redis; by default 1000 times or 10 ms, whichever comes first. See lease.Cohort.
func Cohort(n int, d time.Duration) LeaseOption { return lease.Cohort(n, d) }

// JavaTokens shares the fencing tokens of a name with Redisson's RFencedLock. See
// lease.JavaTokens.
func JavaTokens() LeaseOption { return lease.JavaTokens() }
