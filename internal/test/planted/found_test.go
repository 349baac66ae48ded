// The table of what outsiders found names planted bugs.

package planted

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

// Each finding has a verdict, and the planted bugs that the table names exist.
func TestEachFindingHasItsVerdict(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(read(t, root+"/docs/reports/found.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const finding, verdict, planted = 1, 3, 5
	for _, row := range rows[1:] {
		kind, _, _ := strings.Cut(row[verdict], ":")
		if !slices.Contains([]string{"fixed", "documented", "refused"}, strings.Fields(kind)[0]) {
			t.Errorf("%s: the verdict is %q", row[finding], row[verdict])
		}
		for name := range strings.SplitSeq(row[planted], "; ") {
			if name != "" && !slices.ContainsFunc(bugs, func(b bug) bool { return b.name == name }) {
				t.Errorf("%s: no bug is %q", row[finding], name)
			}
		}
	}
}
