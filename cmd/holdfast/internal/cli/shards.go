// holdfast shards: shows who has which shard.

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/shards"
)

// shardsJSON is what --json prints.
type shardsJSON struct {
	Name   string         `json:"name"`
	Shards int64          `json:"shards"`
	Owners []shardOfJSON  `json:"owners"`
	Counts map[string]int `json:"counts"`
}

// shardOfJSON is one shard that somebody has.
type shardOfJSON struct {
	Shard    int    `json:"shard"`
	Identity string `json:"identity"`
	Value    string `json:"value,omitempty"`
	Token    int64  `json:"token"`
}

func (a *app) shards() *cobra.Command {
	key := ""
	cmd := &cobra.Command{
		Use:   "shards NAME",
		Short: "Show who has which shard",
		Long: lines(
			"Show the members of shards, which shards each has, and what it says of itself; or, with --key, who has the",
			"shard of a key. It changes nothing."),
		Example: "  holdfast shards orders\n  holdfast shards orders --key 'order 7'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			keyed := cmd.Flags().Changed("key")
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				i, err := expect(ctx, client, args[0], holdfast.KindShards)
				if err != nil {
					return err
				}
				if i.Kind != holdfast.KindShards {
					return a.print("%s: no member", view.Name(args[0]))
				}
				s := client.Shards(args[0], int(i.All))
				if keyed {
					return a.shardOf(ctx, s, key)
				}
				return a.allShards(ctx, s)
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().StringVar(&key, "key", "", "who has the shard of this key")
	return cmd
}

// shardOf prints who has the shard of a key.
func (a *app) shardOf(ctx context.Context, s *holdfast.Shards, key string) error {
	info, err := s.Owner(ctx, key)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(shardOfJSON{info.Shard, info.Identity, info.Value, info.Token})
	case !info.Owned():
		return a.print("shard %d: nobody", info.Shard)
	}
	return a.print("shard %d: %s", info.Shard, member(info))
}

// allShards prints each member with its shards.
func (a *app) allShards(ctx context.Context, s *holdfast.Shards) error {
	for all := range s.Watch(ctx) {
		if a.json {
			return a.printJSON(shardsIn(s.Name(), all))
		}
		t := &table{out: a.Out}
		for _, row := range memberRows(all) {
			if err := t.rows([]string{"SHARDS", "MEMBER", "WHICH"}, row); err != nil {
				return err
			}
		}
		return t.flush()
	}
	return context.Cause(ctx)
}

// memberRows returns a row for each member, in the order of the first shard of each, and one for what nobody has.
func memberRows(all []shards.Info) (rows [][]string) {
	var order []string
	of := make(map[string][]int)
	for _, info := range all {
		who := "nobody"
		if info.Owned() {
			who = member(info)
		}
		if of[who] == nil {
			order = append(order, who)
		}
		of[who] = append(of[who], info.Shard)
	}
	for _, who := range order {
		rows = append(rows, []string{strconv.Itoa(len(of[who])), who, ranges(of[who])})
	}
	return rows
}

// member returns what a member says of itself, fit for a terminal.
func member(info shards.Info) string {
	who := view.Name(info.Identity)
	if info.Value != "" {
		who += " (" + view.Name(info.Value) + ")"
	}
	return who
}

// ranges returns ascending numbers in short: "0-3 7".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if last == i {
			parts = append(parts, strconv.Itoa(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, " ")
}

// shardsIn returns what --json prints.
func shardsIn(name string, all []shards.Info) shardsJSON {
	out := shardsJSON{Name: name, Shards: int64(len(all)), Owners: []shardOfJSON{}, Counts: map[string]int{}}
	for _, info := range all {
		if info.Owned() {
			out.Owners = append(out.Owners, shardOfJSON{info.Shard, info.Identity, info.Value, info.Token})
			out.Counts[info.Identity]++
		}
	}
	return out
}
