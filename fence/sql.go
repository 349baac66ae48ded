// SQL: a fence in a database.

package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SQL is a fence in its own table, for writes of the same transaction: for PostgreSQL, SQLite, and others
// that have INSERT ... ON CONFLICT ... DO UPDATE ... WHERE.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	if err := tokens.Pass(ctx, tx, "account:7", lease.Token()); err != nil {
//		return err // and roll back
//	}
//	... the writes ...
//	return tx.Commit() // before the lock is released
//
// If each row belongs to one lock, a token column in that row is enough: see Wrote.
type SQL struct {
	// Table is the table's name. The default is "fencing_tokens". It is put into the statements without
	// quotes.
	Table string
	// Question makes the parameters "?", as SQLite's drivers and others want it. The default is "$1", as
	// PostgreSQL wants it; SQLite takes that too.
	Question bool
}

// Execer is a *sql.Tx, a *sql.Conn or a *sql.DB.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (f SQL) table() string {
	if f.Table == "" {
		return "fencing_tokens"
	}
	return f.Table
}

// Create creates the table, unless it exists.
func (f SQL) Create(ctx context.Context, db Execer) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+f.table()+" (resource VARCHAR(512) PRIMARY KEY, token BIGINT NOT NULL)")
	return err
}

// Pass returns nil if no greater token of the resource was committed before, and writes this one, by one
// statement. Otherwise the error matches ErrStale. It is part of the transaction: a rollback takes it back. In
// PostgreSQL the row stays locked until the transaction ends, so that others wait, and no other token passes
// before the commit. An error of the database is returned as it is.
func (f SQL) Pass(ctx context.Context, tx Execer, resource string, token int64) error {
	if err := check(resource, token); err != nil {
		return err
	}
	values := "($1, $2)"
	if f.Question {
		values = "(?, ?)"
	}
	query := fmt.Sprintf("INSERT INTO %[1]s (resource, token) VALUES %[2]s "+
		"ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE %[1]s.token <= excluded.token", f.table(), values)
	err := Wrote(tx.ExecContext(ctx, query, resource, token))
	if errors.Is(err, ErrStale) {
		return stale(resource, token)
	}
	return err
}

// Wrote takes what ExecContext returns for a statement that checks the token itself, and returns ErrStale if
// it changed no row:
//
//	err := fence.Wrote(db.ExecContext(ctx,
//		"UPDATE accounts SET balance = $1, token = $2 WHERE id = $3 AND token <= $2", balance, lease.Token(), id))
//
// If balance comes from an earlier read, run "UPDATE accounts SET token = $1 WHERE id = $2 AND token <= $1" before
// that read.
//
// Wrote does not see the token, so make sure that it is positive before you write.
//
// A row that is not there is not changed either. In MySQL a row that has these values already counts as not
// changed, unless the connection has clientFoundRows.
func Wrote(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = ErrStale
	}
	return err
}
