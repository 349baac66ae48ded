// The keys of shards.

package keys

const (
	shardsPrefix        = "holdfast_shards"
	shardsTablePrefix   = "holdfast_shards_table"
	shardsTokenPrefix   = "holdfast_shards_token"
	shardsChannelPrefix = "holdfast_shards_channel"
)

// Shared holds the keys and the channel of the shards of one name.
type Shared struct {
	Members string // a sorted set {member: when its lease is over}
	Table   string // who has which shard, and what each member says of itself: a hash
	Token   string // the last fencing token that was given
	Channel string // on which each change is announced
}

// ForShards returns the keys and the channel of the shards of that name. It takes the names that
// ForLock takes.
func (s Space) ForShards(name string) (Shared, error) {
	if err := s.Check(name); err != nil {
		return Shared{}, err
	}
	return Shared{
		Members: s.own(shardsPrefix, name),
		Table:   s.own(shardsTablePrefix, name),
		Token:   s.own(shardsTokenPrefix, name),
		Channel: s.own(shardsChannelPrefix, name),
	}, nil
}
