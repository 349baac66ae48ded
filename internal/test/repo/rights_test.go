// A user with the rights of a kind may run each of its scripts to the end.

package repo

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/rights"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// inScript finds the commands of a script. Rights for every kind allow those of Pub/Sub and TIME.
var (
	inScript = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'(, [^,]+, '', 'PX', '?1)?`)
	ofEvery  = strings.Fields("time publish spublish pubsub")
)

func TestTheRightsOfAKindHaveEachCommandOfItsScripts(t *testing.T) {
	may := make(map[string][]string)
	for _, n := range rights.Needs("", "x", "client", false) {
		may[n.Kind] = append(may[n.Kind], n.Commands...)
	}
	read := make(map[string]bool)
	for _, s := range world.Scripts(t) {
		kind, _, _ := strings.Cut(s.Name(), "/")
		if s.Name() == "semaphore/set" { // which only a PermitSemaphore sends
			kind = "permits"
		}
		if may[kind] == nil {
			continue
		}
		read[kind] = true
		for _, found := range inScript.FindAllStringSubmatch(s.Source(), -1) {
			command := strings.ToLower(found[1])
			lastResort := found[2] != "" || command == "pttl" && kind == "semaphore" // where others are refused
			if !lastResort && !slices.Contains(ofEvery, command) && !slices.Contains(may[kind], command) {
				t.Errorf("%s runs %s, which a user with the rights of %s may not", s.Name(), command, kind)
			}
		}
	}
	if len(read) < 10 {
		t.Errorf("only scripts of %v were read", read)
	}
}
