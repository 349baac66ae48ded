// SQL: a fence in a database.

package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SQL is a fence that keeps its tokens in a table of a database. It protects the writes of the
// transaction in which the program calls Pass. SQL works with PostgreSQL, SQLite, and other databases
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
// If each row of your own table belongs to one lock, a token column in that table is enough, and you do
// not need SQL: see Wrote.
type SQL struct {
	// Table is the name of the table with the tokens. The default is "fencing_tokens". SQL puts the name
	// into its statements without quotes.
	Table string
	// Question makes SQL write the parameters of its statements as "?", which the drivers of SQLite and
	// others expect. By default SQL writes them as "$1", which PostgreSQL expects and SQLite accepts.
	Question bool
}

// Execer is what executes the statements of SQL: a *sql.Tx, a *sql.Conn or a *sql.DB.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (f SQL) table() string {
	if f.Table == "" {
		return "fencing_tokens"
	}
	return f.Table
}

// Create creates the table with the tokens if the table does not exist.
func (f SQL) Create(ctx context.Context, db Execer) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+f.table()+" (resource VARCHAR(512) PRIMARY KEY, token BIGINT NOT NULL)")
	return err
}

// Pass writes the token to the table and returns nil, if no transaction has committed a greater token
// for the resource. If a transaction has, the error matches ErrStale. Pass checks and writes by one
// statement. The statement is part of the transaction tx, so a rollback undoes it. In PostgreSQL the row
// of the resource stays locked until tx ends. So other calls of Pass for the resource wait, and no other
// token passes before tx is committed or rolled back. If the database returns an error, Pass returns the
// same error. If the token is not positive, the error matches holdfast.ErrBadArgument.
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

// Wrote is for a statement that itself checks the token. Call Wrote with the two results of ExecContext
// for that statement. Wrote returns ErrStale if the statement changed no row:
//
//	err := fence.Wrote(db.ExecContext(ctx,
//		"UPDATE accounts SET balance = $1, token = $2 WHERE id = $3 AND token <= $2", balance, lease.Token(), id))
//
// If the new balance depends on a read, run this statement before the read:
//
//	UPDATE accounts SET token = $1 WHERE id = $2 AND token <= $1
//
// Wrote does not see the token. So make sure that the token is positive before you run the statement.
//
// Wrote also returns ErrStale if the row does not exist. In MySQL, a row that already has the new values
// counts as not changed, and Wrote returns ErrStale. If the connection has clientFoundRows, MySQL counts
// such a row as changed.
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
