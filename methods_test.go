// This file is about synchronizers that no Client has made, and about the leases that a failed Lock
// returns: their methods fail, and bring no process down.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/limiter"
)

// nilAndZero returns a nil pointer to a T, and one to the zero T.
func nilAndZero[T any]() []any { return []any{(*T)(nil), new(T)} }

func TestWhatNoClientHasMadeSaysSo(t *testing.T) {
	for _, values := range [][]any{
		nilAndZero[holdfast.Mutex](),
		nilAndZero[holdfast.FairMutex](),
		nilAndZero[fairlock.Ticket](),
		nilAndZero[holdfast.RWMutex](),
		nilAndZero[holdfast.Striped](),
		{new(holdfast.Stripe)}, // nobody has a nil one
		nilAndZero[holdfast.Semaphore](),
		nilAndZero[holdfast.PermitSemaphore](),
		nilAndZero[holdfast.Slots](),
		{holdfast.Slot{}}, // it is no pointer
		nilAndZero[holdfast.Latch](),
		nilAndZero[holdfast.Barrier](),
		nilAndZero[holdfast.Once](),
		nilAndZero[holdfast.Limiter](),
		nilAndZero[holdfast.Shards](),
		nilAndZero[holdfast.Election](),
		nilAndZero[holdfast.Term](),
		nilAndZero[holdfast.MultiLock](),
		nilAndZero[holdfast.Quorum](),
		nilAndZero[holdfast.Lease](),
		nilAndZero[holdfast.MultiLease](),
		nilAndZero[holdfast.QuorumLease](),
		{new(holdfast.Client)}, // what it makes cannot be used either
	} {
		for _, v := range values {
			callAll(t, reflect.ValueOf(v), make(map[reflect.Type]bool))
		}
	}
}

// aName is the text that callOne passes for each string.
const aName = "0123456789abcdef0123456789abcdef"

// Every method of a Client that takes a name uses the mapped name in Redis, and so do the methods of what it returns.
func TestNamesAreMappedByEachMethod(t *testing.T) {
	for i := range reflect.TypeFor[*holdfast.Client]().NumMethod() {
		method := reflect.TypeFor[*holdfast.Client]().Method(i)
		named := false
		for k := range method.Type.NumIn() {
			named = named || method.Type.In(k).Kind() == reflect.String
		}
		if !named || method.Name == "InspectAll" || method.Name == "Watch" { // a pattern is of names as they are in Redis
			continue
		}
		t.Run(method.Name, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				way := redistest.Mini(t).Proxy()
				sent := make(map[string]bool)
				var mu sync.Mutex
				way.OnCommand(func(c redistest.Command) redistest.Fault {
					mu.Lock()
					defer mu.Unlock()
					for _, arg := range c.Args {
						if strings.Contains(arg, aName) {
							sent[arg] = true
						}
					}
					return redistest.Pass
				})
				c := holdfast.New(way.Client(t), holdfast.WithNameMapper(func(name string) string { return "app:{" + name + "}" }))
				makes := reflect.ValueOf(c).Method(i)
				if method.Name == "Limiter" { // which needs a rate
					makes = reflect.ValueOf(func(name string) *holdfast.Limiter { return c.Limiter(name, limiter.Rate(1000, time.Second)) })
				}
				if method.Name == "Pause" { // which needs an end
					makes = reflect.ValueOf(func(name string) error {
						return c.Pause(t.Context(), name, holdfast.Until(time.Now().Add(time.Hour)))
					})
				}
				useDeep(t, makes, 2)
				must(t, c.Close())
				if len(sent) == 0 {
					t.Error("nothing was sent")
				}
				for arg := range sent {
					if !strings.Contains(arg, "app:{"+aName) {
						t.Errorf("%q is not under the mapped name", arg)
					}
				}
			})
		})
	}
}

// Whatever is sent by the methods of a Client with a prefix, every key and every channel begins with the prefix.
func TestEachKeyBeginsWithThePrefix(t *testing.T) {
	for i := range reflect.TypeFor[*holdfast.Client]().NumMethod() {
		method := reflect.TypeFor[*holdfast.Client]().Method(i)
		if method.Name == "InspectAll" || method.Name == "Monitor" || method.Name == "Close" || method.Name == "Shutdown" {
			continue
		}
		t.Run(method.Name, func(t *testing.T) {
			redistest.Bubble(t, func(t *testing.T) {
				way := redistest.Mini(t).Proxy()
				var mu sync.Mutex
				bare := make(map[string]bool)
				way.OnCommand(func(c redistest.Command) redistest.Fault {
					mu.Lock()
					defer mu.Unlock()
					for _, key := range keysAndChannels(c.Name, c.Args) {
						if !strings.HasPrefix(key, "app:") {
							bare[key] = true
						}
					}
					return redistest.Pass
				})
				c := holdfast.New(way.Client(t), holdfast.WithKeyPrefix("app:"), holdfast.WithIdentity("test"))
				useDeep(t, reflect.ValueOf(c).Method(i), 2)
				must(t, c.Close())
				for key := range bare {
					t.Errorf("%q has no prefix", key)
				}
			})
		})
	}
}

// keysAndChannels returns what a command says of keys and channels: its declared keys, the channels that it
// subscribes to, and what looks like the key or the channel of a name, wherever it is.
func keysAndChannels(command string, args []string) (found []string) {
	switch strings.ToLower(command) {
	case "eval", "evalsha":
		n, _ := strconv.Atoi(args[1])
		found = append(found, args[2:2+n]...)
		args = args[2+n:]
	case "subscribe", "ssubscribe":
		found = append(found, args...)
	}
	for _, arg := range args {
		if (strings.Contains(arg, "holdfast_") || strings.Contains(arg, "redisson_")) && !strings.Contains(arg, "redis.call") {
			found = append(found, arg)
		}
	}
	return found
}

// useDeep calls a method, for a second at most, and the methods of the synchronizers that it returns.
func useDeep(t *testing.T, method reflect.Value, depth int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, result := range callOne(ctx, t, method.String(), method, 1+depth) {
		if result.Kind() == reflect.Interface {
			result = result.Elem()
		}
		if depth > 0 && result.IsValid() && (result.Kind() == reflect.Pointer || result.Kind() == reflect.Struct) {
			for i := range result.NumMethod() {
				useDeep(t, result.Method(i), depth-1)
			}
		}
	}
}

// callAll calls the exported methods of v, and those of what they return, and looks at the results.
func callAll(t *testing.T, v reflect.Value, seen map[reflect.Type]bool) {
	if seen[v.Type()] {
		return
	}
	seen[v.Type()] = true
	for i := range v.NumMethod() {
		what := fmt.Sprintf("%v (nil: %v): %s", v.Type(), v.Kind() == reflect.Pointer && v.IsNil(), v.Type().Method(i).Name)
		for _, result := range callOne(t.Context(), t, what, v.Method(i), 2) {
			lookAt(t, what, result, seen)
		}
	}
}

// callOne calls a method with simple arguments: n for each number. A panic fails the test.
func callOne(ctx context.Context, t *testing.T, what string, method reflect.Value, n int) []reflect.Value {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v", what, p)
		}
	}()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		switch in := method.Type().In(i); {
		case strings.Contains(in.PkgPath(), "/internal/"):
			return nil // no program can call it
		case method.Type().IsVariadic() && i == method.Type().NumIn()-1:
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf(aName).Convert(in))
		case in == reflect.TypeFor[time.Duration]():
			args = append(args, reflect.ValueOf(time.Minute))
		case in == reflect.TypeFor[time.Time]():
			args = append(args, reflect.ValueOf(time.Now()))
		case in.Kind() == reflect.Int || in.Kind() == reflect.Int64:
			args = append(args, reflect.ValueOf(n).Convert(in))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return method.Call(args)
}

// lookAt fails the test unless the result says that nothing was done.
func lookAt(t *testing.T, what string, result reflect.Value, seen map[reflect.Type]bool) {
	switch got := result.Interface().(type) {
	case error:
		if !errors.Is(got, holdfast.ErrBadArgument) && !errors.Is(got, holdfast.ErrNoLeader) {
			t.Errorf("%s: error %v", what, got)
		}
	case context.Context:
		if got.Err() == nil {
			t.Errorf("%s: the context goes on", what)
		}
	case <-chan struct{}:
		select {
		case <-got:
		default:
			t.Errorf("%s: the channel is open", what)
		}
	case http.Handler:
		w := httptest.NewRecorder()
		if got.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d", what, w.Code)
		}
	case nil: // an interface without a value
		if mayBeNil := strings.HasSuffix(what, ": Close") || strings.HasSuffix(what, ": Shutdown"); result.Type() == reflect.TypeFor[error]() && !mayBeNil {
			t.Errorf("%s: no error", what)
		}
	default:
		switch {
		case result.Type().CanSeq2():
			for _, err := range result.Seq2() {
				lookAt(t, what, err, seen)
			}
		case result.Kind() == reflect.Func:
			for v := range result.Seq() {
				if e, is := v.Interface().(holdfast.Event); !is || !errors.Is(e.Err, holdfast.ErrBadArgument) {
					t.Errorf("%s: it yields %v", what, v)
				}
			}
		case result.Kind() == reflect.Interface && !result.IsNil():
			callAll(t, result.Elem(), seen)
		case result.Kind() == reflect.Pointer && !result.IsNil(), strings.HasSuffix(result.Type().String(), "Elector"):
			callAll(t, result, seen)
		}
	}
}
