package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	c := Cluster(t, 3, 0)
	rdb := c.Client(t)
	ctx := testContext(t)
	keys := []string{"{tag}a", "{tag}b", "{tag}c"}
	for _, key := range keys {
		Must(t, rdb.Set(ctx, key, key, 0).Err())
	}

	move := c.OpenSlot("{tag}a")
	if move.From == move.To || c.MasterOf("{tag}b") != move.From {
		t.Fatal("an open slot has changed its owner already")
	}
	move.MoveKeys("{tag}a")
	if got := len(move.Keys()); got != 2 {
		t.Errorf("the old owner has %d keys, want 2", got)
	}
	from := move.From.Client(t)
	if err := from.Get(ctx, "{tag}a").Err(); !redis.HasErrorPrefix(err, "ASK") {
		t.Errorf("a moved key: %v, want ASK", err)
	}
	want := "TRYAGAIN"
	if !HasShardedChannels(t) {
		want = "ASK" // before Redis 7 the new owner says TRYAGAIN
	}
	if err := from.MGet(ctx, "{tag}a", "{tag}b").Err(); !redis.HasErrorPrefix(err, want) {
		t.Errorf("keys on both sides: %v, want %s", err, want)
	}
	if owner := move.Finish(); owner != move.To || c.MasterOf("{tag}a") != owner {
		t.Error("the slot is not where it was to go")
	}
	if err := from.Get(ctx, "{tag}a").Err(); !redis.HasErrorPrefix(err, "MOVED") {
		t.Errorf("the old owner: %v, want MOVED", err)
	}
	visited := map[*Proc]bool{c.MasterOf("{tag}a"): true}
	for range 2 {
		visited[c.MoveSlot("{tag}a")] = true
	}
	if len(visited) != 3 {
		t.Errorf("three moves visited %d masters", len(visited))
	}
	for _, key := range keys {
		if got, err := rdb.Get(ctx, key).Result(); got != key || err != nil {
			t.Errorf("%s = %q, %v", key, got, err)
		}
	}
}
