package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/fence"
)

// A fence for what one process writes in its memory.
func ExampleGuard_Do() {
	var tokens fence.Guard
	balance := 100
	write := func(token int64, to int) error {
		return tokens.Do("account:7", token, func() error {
			balance = to
			return nil
		})
	}
	fmt.Println(write(2, 70))                            // a later holder
	fmt.Println(errors.Is(write(1, 90), fence.ErrStale)) // one that stood still meanwhile
	fmt.Println(balance)
	// Output:
	// <nil>
	// true
	// 70
}

// A fence for what is stored in Redis.
func ExampleRedis_Set() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	ctx := context.Background()

	tokens := fence.Redis{Client: rdb}
	fmt.Println(tokens.Set(ctx, "price:bolt", 42, time.Hour, 2))
	fmt.Println(errors.Is(tokens.Set(ctx, "price:bolt", 41, time.Hour, 1), fence.ErrStale))
	fmt.Println(rdb.Get(ctx, "price:bolt").Int())
	// Output:
	// <nil>
	// true
	// 42 <nil>
}

// A fence in a service of your own: the holder sends its token in a header.
func ExampleMiddleware() {
	accounts := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	tokens := new(fence.Guard)
	service := fence.Middleware(tokens, func(r *http.Request) string { return r.URL.Path })(accounts)

	for _, token := range []int64{2, 1} {
		request := httptest.NewRequest(http.MethodPut, "/accounts/7", nil)
		fence.SetHeader(request, token)
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, request)
		fmt.Println(token, answer.Code)
	}
	// Output:
	// 2 204
	// 1 412
}

// A database: the check is part of the transaction that writes, which is committed before the lock is released.
func ExampleSQL_Pass() {
	withdraw := func(ctx context.Context, db *sql.DB, token int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after the commit
		if err := (fence.SQL{}).Pass(ctx, tx, "account:7", token); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 30 WHERE id = 7"); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = withdraw
}

// A row that belongs to one lock has a column for the token, and one statement checks and writes.
func ExampleWrote() {
	set := func(ctx context.Context, db *sql.DB, balance int, token int64) error {
		return fence.Wrote(db.ExecContext(ctx,
			"UPDATE accounts SET balance = $1, token = $2 WHERE id = 7 AND token <= $2", balance, token))
	}
	_ = set
}

// Another token may pass between Pass and the write: this refuses writes that are late, not those
// that are close.
func ExampleRedis_Pass() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	ctx := context.Background()

	var tokens fence.Fence = fence.Redis{Client: rdb, Keep: time.Hour}
	for _, token := range []int64{5, 5, 4, 6} {
		fmt.Println(token, errors.Is(tokens.Pass(ctx, "mailbox", token), fence.ErrStale))
	}
	// Output:
	// 5 false
	// 5 false
	// 4 true
	// 6 false
}
