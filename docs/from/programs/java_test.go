// The programs in Java are built with Maven.

package programs

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// buildJava builds the programs in java/ once. The first build on a machine downloads their libraries,
// which takes a minute or so.
var buildJava = sync.OnceValues(func() ([]byte, error) {
	mvn := exec.Command("mvn", "-q", "-B", "process-classes")
	mvn.Dir = "java"
	return mvn.CombinedOutput()
})

// inJava returns how to run a class of java/.
func inJava(class string) command {
	return func(t *testing.T) []string {
		t.Helper()
		for _, tool := range []string{"java", "mvn"} {
			if _, err := exec.LookPath(tool); err != nil {
				redistest.Missing(t, tool+" is not installed")
			}
		}
		if out, err := buildJava(); err != nil {
			t.Fatalf("mvn: %v\n%s", err, out)
		}
		return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "java/target/classes:java/target/lib/*", class}
	}
}
