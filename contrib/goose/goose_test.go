package holdgoose_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	holdgoose "github.com/holdfast-go/holdfast/contrib/goose"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// bubble runs a test in virtual time, with a server and a database.
func bubble(t *testing.T, test func(t *testing.T, s *holdfasttest.Server, file string)) {
	file := "file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=busy_timeout(10000)"
	synctest.Test(t, func(t *testing.T) { test(t, holdfasttest.New(t), file) })
}

// replica returns the provider of one process, with one migration.
func replica(
	t *testing.T, file string, migrate func(ctx context.Context) error, options ...goose.ProviderOption,
) *goose.Provider {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	up := func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE orders (id INTEGER)"); err != nil {
			return err
		}
		return migrate(ctx)
	}
	options = append(options, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunTx: up}, nil)))
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func locked(mutex *holdfast.Mutex) goose.ProviderOption {
	return goose.WithLocker(holdgoose.New(mutex))
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func wantVersion(t *testing.T, p *goose.Provider, want int64) {
	t.Helper()
	if version, err := p.GetDBVersion(t.Context()); err != nil || version != want {
		t.Errorf("the database is at version %d, %v; want %d", version, err, want)
	}
}

func TestOneReplicaMigratesAndTheOtherWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, file string) {
		applied := make(chan int, 2)
		for range 2 {
			p := replica(t, file, func(context.Context) error {
				time.Sleep(5 * time.Minute) // renewed meanwhile
				return nil
			}, locked(s.Client().Mutex("shop:migrations")))
			go func() {
				results, err := p.Up(t.Context())
				if err != nil {
					t.Error(err)
				}
				applied <- len(results)
			}()
		}
		if first, second := <-applied, <-applied; first+second != 1 {
			t.Errorf("the migration ran %d times", first+second)
		}
		s.RequireNoLeases()
	})
}

func TestWithoutTheLockNothingIsMigrated(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, file string) {
		p := replica(t, file, func(context.Context) error { return nil }, locked(s.Client().Mutex("shop:migrations")))
		refused := func(want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := p.Up(ctx)
			wantErr(t, err, want)
		}
		s.Down()
		refused(holdfast.ErrUnavailable)
		s.Up()
		wantVersion(t, p, 0) // goose locks to look at the version, too
		release := s.HoldElsewhere("shop:migrations")
		refused(holdfast.ErrBusy)
		time.AfterFunc(time.Hour, release)
		if results, err := p.Up(t.Context()); err != nil || len(results) != 1 {
			t.Errorf("%v, %v", results, err)
		}
	})
}

func TestAfterALossTheMigrationGoesOnAndUpSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, file string) {
		other := s.Client().Mutex("shop:migrations")
		p := replica(t, file, func(ctx context.Context) error {
			s.Expire("shop:migrations")
			l, err := other.TryLock(ctx) // another may begin
			if err != nil {
				return err
			}
			time.Sleep(time.Minute)
			return errors.Join(ctx.Err(), l.Release(ctx))
		}, locked(s.Client().Mutex("shop:migrations")))
		results, err := p.Up(t.Context())
		if !errors.Is(err, holdfast.ErrLost) || len(results) != 1 {
			t.Errorf("%v, %v, want one migration and ErrLost", results, err)
		}
		wantVersion(t, p, 1)
	})
}

func TestUnderDoALossStopsTheMigration(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, file string) {
		mutex := s.Client().Mutex("shop:migrations")
		p := replica(t, file, func(ctx context.Context) error {
			s.Expire("shop:migrations")
			<-ctx.Done()
			return context.Cause(ctx)
		}, locked(mutex)) // re-entered
		err := holdfast.Do(t.Context(), mutex, func(ctx context.Context) error {
			_, err := p.Up(ctx)
			return err
		})
		wantErr(t, err, holdfast.ErrLost)
		wantVersion(t, p, 0)
	})
}

func TestWhenRedisGoesUpFailsThoughItHasMigrated(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, file string) {
		p := replica(t, file, func(context.Context) error {
			s.Down()
			return nil
		}, locked(s.Client().Mutex("shop:migrations")))
		began := time.Now()
		results, err := p.Up(t.Context())
		if err == nil || len(results) != 1 {
			t.Errorf("%v, %v, want one migration and an error", results, err)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		s.Up()
		wantVersion(t, p, 1)
		s.RequireNoLeases()
	})
}

// Goose does not say who unlocks: the one that has lost the lock may come last.
func TestAfterALossAllThatHaveLockedAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, _ string) {
		l := holdgoose.New(s.Client().Mutex("shop:migrations"))
		lock := func() {
			t.Helper()
			if err := l.Lock(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if l.Unlock(t.Context(), nil) == nil {
			t.Error("no error of what is not locked")
		}
		lock()
		s.Expire("shop:migrations")
		time.Sleep(time.Minute) // the loss is noticed
		lock()
		for range 2 {
			wantErr(t, l.Unlock(t.Context(), nil), holdfast.ErrLost)
		}
		lock()
		wantErr(t, l.Unlock(t.Context(), nil), nil)
		s.RequireNoLeases()
	})
}
