// A Client with a key prefix: what is refused, which names Inspect has, and that the commonest rule is enough.

package holdfast_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestAPrefixIsOfTheClient(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		c := clienttest.OpenClient(t, server.Client(), holdfast.WithKeyPrefix("app:"), holdfast.WithIdentity("me"))
		bare := clienttest.OpenClient(t, server.Client())
		for _, m := range []holdfast.Locker{
			c.Mutex("orders", holdfast.JavaTokens()), c.RWMutex("orders", holdfast.JavaTokens()),
			clienttest.OpenClient(t, server.Client(), holdfast.WithKeyPrefix("{app}:")).Mutex("orders"),
		} {
			if _, err := m.TryLock(t.Context()); !errors.Is(err, holdfast.ErrBadArgument) {
				t.Errorf("%v, want ErrBadArgument", err)
			}
		}
		l := clienttest.Grab(t, c.Mutex("orders"))
		time.Sleep(time.Minute) // it is renewed, and the Client says who it is
		if i, err := bare.Inspect(t.Context(), "app:orders"); err != nil || i.Kind != holdfast.KindMutex {
			t.Errorf("the lock is not at app:orders: %v, %v", i, err)
		}
		if i, err := bare.Inspect(t.Context(), "orders"); err != nil || i.Kind != holdfast.KindFree {
			t.Errorf("something is at orders: %v, %v", i, err)
		}
		clienttest.Grab(t, bare.Mutex("elsewhere"))
		var names []string
		for i, err := range c.InspectAll(t.Context(), "o*") {
			names = append(names, i.Name)
			if err != nil || len(i.Holders) != 1 || i.Holders[0].Who != "me" {
				t.Errorf("%v, %v", i, err)
			}
		}
		for i, err := range bare.InspectAll(t.Context(), "app:*") {
			names = append(names, i.Name)
			must(t, err)
		}
		if want := []string{"orders", "app:orders"}; !reflect.DeepEqual(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
		must(t, l.Release(t.Context()))
	})
}

// On a server whose user may use the keys and channels of the prefix only, all methods of a Client and of what
// it makes do without a refusal.
func TestOneRuleForThePrefixIsEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	as := clienttest.User(t, server, "app", "~app:*", "&app:*", "+@all")
	c := holdfast.New(server.Client(t, as), holdfast.WithKeyPrefix("app:"), holdfast.WithIdentity("test"))
	findings, err := checked(t, c, "", "orders")
	for _, f := range findings {
		if f.Problem == holdfast.Rights {
			t.Error(f)
		}
	}
	must(t, err)
	for i := range reflect.TypeFor[*holdfast.Client]().NumMethod() {
		switch method := reflect.TypeFor[*holdfast.Client]().Method(i); method.Name {
		case "Close", "Shutdown", "Monitor":
		default:
			useDeep(t, reflect.ValueOf(c).Method(i), 1)
		}
	}
	must(t, c.Close())
	denied, err := server.Admin().Do(t.Context(), "acl", "log").Slice()
	if err != nil || len(denied) > 0 {
		t.Errorf("denied: %v, %v", denied, err)
	}
}
