package scenes

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Together(6) // a scene mostly waits
	redistest.Main(m)
}

func TestEverySceneHolds(t *testing.T) {
	redistest.RealTime(t)
	for _, scene := range scenes {
		t.Run(scene.title, func(t *testing.T) {
			t.Parallel()
			for _, failed := range playAlone(t, scene) {
				t.Errorf("did not hold: %s", failed)
			}
		})
	}
}

// playAlone plays the scene on a server of its own, and returns what did not hold.
func playAlone(t *testing.T, scene scene) []string {
	t.Helper()
	theatre, err := open(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := theatre.close(); err != nil {
			t.Error(err)
		}
	}()
	return theatre.stage(t.Output()).play(t.Context(), scene)
}

func TestTheTourOnAServerLeavesNothingThere(t *testing.T) {
	for i, scene := range scenes {
		t.Run(scene.title, func(t *testing.T) {
			t.Parallel()
			server := redistest.Server(t)
			var out bytes.Buffer
			if err := Run(t.Context(), &out, "redis://"+server.Addr(), []string{"-scene", strconv.Itoa(i + 1)}); err != nil {
				t.Errorf("%v\n%s", err, &out)
			}
			keys, err := server.Admin().Keys(t.Context(), "*").Result()
			if err != nil || len(keys) > 0 {
				t.Errorf("it leaves %q, %v", keys, err)
			}
		})
	}
}

// A check that cannot fail would make a tour that cannot fail.
func TestASceneThatFailsIsNamed(t *testing.T) {
	got := playAlone(t, scene{"a scene that fails", func(_ context.Context, s *stage) error {
		s.check("one is one", true)
		s.check("one is two", false)
		return errors.New("the curtain fell")
	}})
	want := []string{"one is two", "the scene reaches its end: the curtain fell"}
	if !slices.Equal(got, want) {
		t.Errorf("failed checks\n got %q\nwant %q", got, want)
	}
}

// The check of scene 1 finds two visitors that are inside at the same time.
func TestTwoInsideAtOnceAreFound(t *testing.T) {
	got := playAlone(t, scene{"no lock", func(ctx context.Context, s *stage) error {
		return s.useAlone(ctx, "door", "A", func() error {
			return s.useAlone(ctx, "door", "B", func() error { return nil })
		})
	}})
	if len(got) != 1 || !strings.Contains(got[0], "B found A inside") {
		t.Errorf("failed checks: %q", got)
	}
}

func TestTheListNamesEveryScene(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), &out, "", []string{"-list"}); err != nil {
		t.Fatal(err)
	}
	for _, scene := range scenes {
		if !strings.Contains(out.String(), scene.title) {
			t.Errorf("the list lacks %q:\n%s", scene.title, &out)
		}
	}
}

func TestOneSceneIsPlayedByItsNumber(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), &out, "", []string{"-scene", "3"}); err != nil { // no bounds in real time
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n\n3. "+scenes[2].title); got != 1 {
		t.Errorf("scene 3 was played %d times:\n%s", got, &out)
	}
	if strings.Contains(out.String(), scenes[3].title) {
		t.Errorf("scene 4 was played too:\n%s", &out)
	}
}

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-scene", "99"}, {"-scene", "-1"}, {"scene"}} {
		if err := Run(t.Context(), t.Output(), "", args); err == nil {
			t.Errorf("Run(%q) succeeded", args)
		}
	}
	if err := Run(t.Context(), t.Output(), "nonsense://", nil); err == nil {
		t.Error("a REDIS_URL that is none was taken")
	}
}
