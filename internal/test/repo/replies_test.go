// Replies of scripts are read where their scripts are.

package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A script's layout is known to one file of its package: replies.go, or reply.go where many packages
// share it. If another file read an element by its index too, a change of the script would leave that one behind.
func TestRepliesAreReadInOneFileOfTheirPackage(t *testing.T) {
	byIndex := regexp.MustCompile(`\.(Int|Text|Number)\([0-9i]|[rR]eply\.(Numbers|Values)\b`)
	read := 0
	for _, pattern := range []string{"*.go", "*/*.go", "internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		redistest.Must(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			redistest.Must(t, err)
			found := byIndex.Find(source)
			switch name := filepath.Base(file); {
			case found == nil, strings.HasSuffix(name, "_test.go"), strings.HasPrefix(file, "internal/conn/"):
			case name == "replies.go", name == "reply.go":
				read++
			default:
				t.Errorf("%s reads a reply by %q", file, found)
			}
		}
	}
	if read < 10 {
		t.Errorf("found %d files that read replies", read)
	}
}
