// Rolling deploys, drawn at random and played by the scripts alone: who leaves, and in which order the members ask.
//
//	HOLDFAST_LONG=1 go test -run TestARollingDeploy ./shards    # 400 of them

package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Each member is replaced by a new one, one at a time. If all new ones join before the first old one leaves, shards may move more
// often: a new member may give up what another new one gave it, since the table does not say from whom a shard came.
func TestARollingDeployMovesEachShardAtMostTwice(t *testing.T) {
	rdb := redistest.Mini(t).Client()
	for seed := range uint64(redistest.Count(t, 400)) {
		r := rand.New(rand.NewPCG(seed, 0))
		f := &fleet{asker: newAsker(t, rdb), r: r, owners: make([]string, 1+r.IntN(16))}
		for range 2 + r.IntN(6) {
			f.join()
			if r.IntN(3) == 0 && len(f.members) > 2 {
				f.leave(f.members[r.IntN(len(f.members))])
			}
		}
		f.moves = make([]int, len(f.owners))
		old, joinsFirst := slices.Clone(f.members), r.IntN(2) == 0
		for _, i := range r.Perm(len(old)) {
			if joinsFirst {
				f.join()
			}
			f.leave(old[i])
			if !joinsFirst {
				f.join()
			}
		}
		if most := slices.Max(f.moves); most > 2 {
			t.Errorf("seed %d: %d members, %d shards: one moves %d times", seed, len(old), len(f.owners), most)
		}
	}
}

// fleet is the members of some shards.
type fleet struct {
	*asker
	r       *rand.Rand
	members []string
	joined  int
	owners  []string // of each shard
	moves   []int    // of each shard; nil: they are not counted yet
}

func (f *fleet) join() {
	f.joined++
	m := fmt.Sprint("m", f.joined)
	f.members = append(f.members, m)
	f.Do(fmt.Sprintf("join %s of=%d", m, len(f.owners)))
	f.settle()
}

func (f *fleet) leave(m string) {
	f.members = slices.DeleteFunc(f.members, func(other string) bool { return other == m })
	f.Do("leave " + m)
	if len(f.members) > 0 {
		f.settle()
	}
}

// settle has the members ask, and give up, until nothing changes.
func (f *fleet) settle() {
	last, asked := map[string]string{}, map[string]string{}
	for changed := true; changed; {
		changed = false
		for _, i := range f.r.Perm(len(f.members)) {
			m := f.members[i]
			reply := f.Ask(time.Minute, "balance "+m+asked[m])
			_, gives, _ := strings.Cut(reply, "gives")
			changed = changed || reply != last[m] || gives != ""
			last[m], asked[m] = reply, gives
		}
	}
	f.look()
}

// look counts what has moved, and fails the test unless the shares are even.
func (f *fleet) look() {
	table := f.RDB.HGetAll(f.T.Context(), "d").Val()
	has := map[string]int{}
	for n := range f.owners {
		_, owner, _ := strings.Cut(table[strconv.Itoa(n)], " ")
		has[owner]++
		if f.moves != nil && owner != f.owners[n] {
			f.moves[n]++
		}
		f.owners[n] = owner
	}
	for _, m := range f.members {
		if each := len(f.owners) / len(f.members); has[m+":1"] != each && has[m+":1"] != each+1 {
			f.T.Errorf("%d members have %v of %d shards", len(f.members), has, len(f.owners))
		}
	}
}
