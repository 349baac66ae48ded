// The log does not contain the whole name of a Client's channel.

package pubsub

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The channel on which a Client hears of its grants ends in the Client's id. Anyone who knows that
// id could take over what the Client holds, so the log does not contain it.
func TestTheLogTellsNoClientsID(t *testing.T) {
	const id = "57a5b2ea-b287-8c0a-a5d0-64ca2becd714"
	const grants = "holdfast_lock_grant:{wanted}:" + id
	log := new(redistest.Log)
	inBubble(t, Config{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		func(t *testing.T, s *Service, r *redisServer, src *fakeSource) {
			r.refuse.set(func(verb string, _ []string) string {
				if verb == "SUBSCRIBE" {
					return "NOPERM this user has no permissions to access one of the channels used as arguments"
				}
				return ""
			})
			s.Subscribe(grants)
			time.Sleep(time.Minute)
			src.home.set(func(context.Context, string) (string, error) { return "", errors.New("none") })
			r.last.get().Close()
			time.Sleep(time.Minute)
			s.Close()
			synctest.Wait()
		})
	if strings.Contains(log.String(), id) {
		t.Errorf("the log tells the id:\n%s", log)
	}
	for _, want := range []string{"denied", "no server found", "{wanted}:57a5b2ea…"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
}
