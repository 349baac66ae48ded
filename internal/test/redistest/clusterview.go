// A view is what one cluster node reports about all nodes.

package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nodeView is one line of CLUSTER NODES.
type nodeView struct {
	id, flags, master string
	epoch             int
	ranges            []string
}

// view returns what the node reports about all nodes.
func (n *clusterNode) view() ([]nodeView, error) {
	reply, err := n.try("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var view []nodeView
	for line := range strings.Lines(reply.(string)) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("CLUSTER NODES line %q", line)
		}
		epoch, err := strconv.Atoi(f[6])
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES line %q: %w", line, err)
		}
		view = append(view, nodeView{id: f[0], flags: f[2], master: f[3], epoch: epoch, ranges: f[8:]})
	}
	return view, nil
}

func (v nodeView) has(flag string) bool { return slices.Contains(strings.Split(v.flags, ","), flag) }

// serves ignores the bracketed entries of slots that are being moved.
func (v nodeView) serves(slot int) bool {
	for _, r := range v.ranges {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil && from <= slot && slot <= to {
			return true
		}
	}
	return false
}
