package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/fence"
)

// databases runs a test on each database.
func databases(t *testing.T, test func(t *testing.T, db *sql.DB, f fence.SQL)) {
	t.Run("SQLite", func(t *testing.T) {
		db := open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "test.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
		for _, f := range []fence.SQL{{Question: true}, {Table: "tokens"}} {
			t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) { test(t, db, f) })
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) { test(t, open(t, "pgx", postgres(t)), fence.SQL{}) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// postgres starts a server, and returns how to reach it.
func postgres(t *testing.T) string {
	t.Helper()
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no PostgreSQL in /usr/lib/postgresql")
		}
		t.Skip("no PostgreSQL in /usr/lib/postgresql")
	}
	bin := bins[len(bins)-1]
	dir, err := os.MkdirTemp("", "fence") // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := notRoot(t, dir)
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		return cmd
	}
	if out, err := run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := run("postgres", "-D", data, "-k", dir, "-h", "", "-F")
	var log bytes.Buffer
	server.Stderr = &log
	must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	source := "host=" + dir + " user=postgres dbname=postgres"
	db := open(t, "pgx", source)
	for until := time.Now().Add(30 * time.Second); db.Ping() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			_ = server.Process.Kill()
			_ = server.Wait()
			t.Fatalf("PostgreSQL does not answer:\n%s", &log)
		}
	}
	return source
}

// notRoot gives the folder to a user that PostgreSQL runs as: it refuses to run as root.
func notRoot(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	must(t, err)
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	must(t, os.Chown(dir, uid, gid))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func TestSQL(t *testing.T) {
	databases(t, func(t *testing.T, db *sql.DB, f fence.SQL) {
		ctx := t.Context()
		for range 2 {
			must(t, f.Create(ctx, db))
		}
		for _, step := range []struct {
			resource string
			token    int64
			passes   bool
		}{
			{"a", 5, true}, {"a", 5, true}, {"a", 4, false}, {"a", 6, true}, {"a", 5, false},
			{"b", 1, true}, {"a", 1795593711927382, true}, {"a", 1795593711927381, false},
		} {
			if err := f.Pass(ctx, db, step.resource, step.token); errors.Is(err, fence.ErrStale) == step.passes || err != nil && !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s, %d: %v", step.resource, step.token, err)
			}
		}

		// What is rolled back has not passed.
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		must(t, f.Pass(ctx, tx, "c", 9))
		must(t, tx.Rollback())
		must(t, f.Pass(ctx, db, "c", 8))
	})
}

// Writers come in any order, several at once: what is committed is in the order of the tokens.
func TestSQL_CommitsAreInOrder(t *testing.T) {
	databases(t, func(t *testing.T, db *sql.DB, f fence.SQL) {
		ctx := t.Context()
		must(t, f.Create(ctx, db))
		counted := "written_" + fmt.Sprint(rand.Uint32())
		_, err := db.ExecContext(ctx, "CREATE TABLE "+counted+" (n INTEGER PRIMARY KEY, token BIGINT NOT NULL)")
		must(t, err)
		var writers sync.WaitGroup
		tokens := rand.Perm(100)
		for part := range slices.Chunk(tokens, 20) {
			writers.Go(func() {
				for _, token := range part {
					if err := write(ctx, db, f, counted, int64(token)+1); err != nil && !errors.Is(err, fence.ErrStale) {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		var last, n int64
		rows, err := db.QueryContext(ctx, "SELECT token FROM "+counted+" ORDER BY n")
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			before := last
			if err := rows.Scan(&last); err != nil || last < before {
				t.Fatalf("%d was written after %d, %v", last, before, err)
			}
			n++
		}
		if last != 100 || n == 0 {
			t.Errorf("%d were written, the last has the token %d", n, last)
		}
	})
}

// write writes the token as the next row, if it passes.
func write(ctx context.Context, db *sql.DB, f fence.SQL, table string, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f.Pass(ctx, tx, table, token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+table+" (n, token) SELECT COALESCE(MAX(n), 0) + 1, CAST($1 AS BIGINT) FROM "+table, token); err != nil {
		return err
	}
	return tx.Commit()
}

// A column does with one statement.
func TestWrote(t *testing.T) {
	databases(t, func(t *testing.T, db *sql.DB, _ fence.SQL) {
		ctx, table := t.Context(), "accounts_"+fmt.Sprint(rand.Uint32())
		_, err := db.ExecContext(ctx, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, token BIGINT NOT NULL)")
		must(t, err)
		must(t, fence.Wrote(db.ExecContext(ctx, "INSERT INTO "+table+" VALUES (7, 100, 0)")))
		set := func(balance, token int64) error {
			return fence.Wrote(db.ExecContext(ctx, "UPDATE "+table+" SET balance = $1, token = $2 WHERE id = 7 AND token <= $2", balance, token))
		}
		for _, step := range []struct {
			balance, token int64
			want           error
		}{{200, 5, nil}, {200, 5, nil}, {100, 4, fence.ErrStale}, {300, 6, nil}} {
			if err := set(step.balance, step.token); !errors.Is(err, step.want) {
				t.Errorf("%+v: %v", step, err)
			}
		}
		if err := fence.Wrote(db.ExecContext(ctx, "UPDATE no_such_table SET x = 1")); err == nil || errors.Is(err, fence.ErrStale) {
			t.Error(err)
		}
	})
}
