// A wire takes over some options of the client that the Manager is given.

package server

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// open is a circuit breaker that lets nothing through.
type open struct{}

func (open) Allow() error       { return errors.New("the circuit breaker is open") }
func (open) ReportResult(error) {}

// users returns options in which each text, number, function and pointer has a value that is not its default.
func users() (o redis.Options) {
	o.Limiter = open{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[redis.Options]()) {
		switch f := reflect.ValueOf(&o).Elem().FieldByIndex(field.Index); {
		case !field.IsExported():
		case f.Kind() == reflect.String:
			f.SetString("own")
		case f.CanInt():
			f.SetInt(int64(time.Minute))
		case f.Kind() == reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { panic("called") }))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
	o.MaintNotificationsConfig.Mode = maintnotifications.ModeEnabled
	return o
}

// What reaches the server is the user's; how it is reached is the Manager's. Of two timeouts the shorter counts.
func TestWireOptionsKeepWhatReachesTheServer(t *testing.T) {
	user := users()
	got := Options(user, dial.NewFeeds(nil))
	for _, field := range []string{
		"Network", "Addr", "ClientName", "Dialer", "Protocol", "Username", "Password", "DB", "TLSConfig",
		"ReadBufferSize", "WriteBufferSize", "ConnMaxLifetime", "ConnMaxIdleTime",
	} {
		want, have := reflect.ValueOf(user).FieldByName(field), reflect.ValueOf(*got).FieldByName(field)
		if same := want.Kind() == reflect.Func && want.Pointer() == have.Pointer(); !same && !reflect.DeepEqual(want.Interface(), have.Interface()) {
			t.Errorf("%s: %v, want the user's %v", field, have, want)
		}
	}
	for name, ok := range map[string]bool{
		"no retries":             got.MaxRetries == -1,
		"one dial":               got.DialerRetries == 1,
		"deadlines of contexts":  got.ContextTimeoutEnabled,
		"a small pool":           got.PoolSize <= 2 && got.MaxConcurrentDials == 1,
		"no idle connections":    got.MinIdleConns == 0 && got.MaxIdleConns == 0 && got.MaxActiveConns == 0,
		"no pool for pipelines":  got.PipelinePoolSize == -1,
		"no CLIENT SETINFO":      got.DisableIdentity,
		"no maintenance":         got.MaintNotificationsConfig.Mode == maintnotifications.ModeDisabled,
		"no client side cache":   got.ClientSideCache == nil && got.ClientSideCacheConfig == nil,
		"no circuit breaker":     got.Limiter == nil,
		"no automatic pipelines": got.AutoPipelineOptions == nil,
		"the user's as they were": user.PoolSize == users().PoolSize &&
			user.MaintNotificationsConfig.Mode == maintnotifications.ModeEnabled,
	} {
		if !ok {
			t.Errorf("%s: not so: %+v", name, got)
		}
	}
	for _, users := range []time.Duration{100 * time.Millisecond, ioTimeout, DialTimeout, time.Minute, 0, -1} { // 0 and -1: no timeout
		got := Options(redis.Options{ReadTimeout: users, WriteTimeout: users, DialTimeout: users}, dial.NewFeeds(nil))
		io, dial := longestReply, DialTimeout
		if users > 0 {
			io, dial = min(users, io), min(users, dial)
		}
		if got.ReadTimeout != io || got.WriteTimeout != io || got.DialTimeout != dial {
			t.Errorf("the user's %v became %v, %v and a dial timeout of %v", users, got.ReadTimeout, got.WriteTimeout, got.DialTimeout)
		}
	}
}

// This test fails when go-redis adds a field to its options. A developer must then decide on
// purpose whether a Manager takes the field over, replaces it or ignores it, and users must be
// told.
func TestEveryOptionOfGoRedisIsInTheTable(t *testing.T) {
	table := optionsTable(t)
	for letter, options := range map[string]reflect.Type{
		"O": reflect.TypeFor[redis.Options](),
		"C": reflect.TypeFor[redis.ClusterOptions](),
		"F": reflect.TypeFor[redis.FailoverOptions](),
		"U": reflect.TypeFor[redis.UniversalOptions](),
	} {
		known := make(map[string]bool)
		for _, field := range reflect.VisibleFields(options) {
			if !field.IsExported() {
				continue
			}
			known[field.Name] = true
			if !strings.Contains(table[field.Name], letter) {
				t.Errorf("%s.%s is not in the table of docs/connecting.md", options, field.Name)
			}
		}
		for name, of := range table {
			if strings.Contains(of, letter) && !known[name] {
				t.Errorf("%s has no %s, which is in the table of docs/connecting.md", options, name)
			}
		}
	}
}

// optionsTable returns, for each option of the table in the document, the structs that have it.
func optionsTable(t *testing.T) map[string]string {
	text, err := os.ReadFile("../../../docs/connecting.md")
	redistest.Must(t, err)
	_, text, _ = bytes.Cut(text, []byte("## Options of go-redis"))
	table := make(map[string]string)
	name := regexp.MustCompile("`(\\w+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		if verdict := cells[2]; verdict != "taken over" && verdict != "replaced" && verdict != "ignored" {
			t.Errorf("%q says neither taken over, nor replaced, nor ignored", line)
		}
		for _, found := range name.FindAllStringSubmatch(cells[0], -1) {
			table[found[1]] += cells[1]
		}
	}
	return table
}
