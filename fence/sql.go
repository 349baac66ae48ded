// SQL: a fence in a database.

package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SQL is a fence whose tokens are in a table of the database. It protects the writes of the transaction in which Pass
// is called. It works with PostgreSQL, SQLite, and other databases that have INSERT ... ON CONFLICT ... DO UPDATE ...
// WHERE.
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
	// Table is the name of the table. The default is "fencing_tokens". The name is put into the statements
	// without quotes.
	Table string
	// Question writes parameters as "?", which the drivers of SQLite and others expect. By default they are
	// written as "$1", which PostgreSQL expects and SQLite accepts.
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

// Create creates the table if it does not exist.
func (f SQL) Create(ctx context.Context, db Execer) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+f.table()+" (resource VARCHAR(512) PRIMARY KEY, token BIGINT NOT NULL)")
	return err
}

// Pass returns nil if no greater token of the resource was committed before, and writes this token, by one statement.
// Otherwise the error matches ErrStale. The statement is part of the transaction: a rollback undoes it. In PostgreSQL
// the row stays locked until the transaction ends, so other calls of Pass for the resource wait, and no other token
// passes before the commit. An error of the database is returned as it is.
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

// Wrote is for a statement that itself checks the token. It takes what ExecContext returns for the statement, and
// returns ErrStale if the statement changed no row:
//
//	err := fence.Wrote(db.ExecContext(ctx,
//		"UPDATE accounts SET balance = $1, token = $2 WHERE id = $3 AND token <= $2", balance, lease.Token(), id))
//
// If balance depends on a read, run "UPDATE accounts SET token = $1 WHERE id = $2 AND token <= $1" before the read.
//
// Wrote does not see the token, so make sure that it is positive before you write.
//
// Wrote also returns ErrStale if the row does not exist. In MySQL a row that already has these values counts as not
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
