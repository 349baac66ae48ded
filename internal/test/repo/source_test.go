// What holds for the text of the sources: the words of comments, and where replies of scripts are read.

package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// avoided are words that comments do without, and what they say instead.
var avoided = map[*regexp.Regexp]string{
	regexp.MustCompile(`\bby (itself|themselves)\b`):                    "alone, automatically, of its own accord",
	regexp.MustCompile(`\bat the (most|least)\b`):                       "at most, at least",
	regexp.MustCompile(`\balso if\b`):                                   "even if",
	regexp.MustCompile(`\b(is|are|was|were|be|been) told\b`):            "is notified, is logged, gets",
	regexp.MustCompile(`\b(must never|may|would|still) stand in Redis`): "be left, stay",
}

func TestCommentsUsePlainWords(t *testing.T) {
	files := append(filesBelow(t, ".", ".lua"), filesBelow(t, ".", ".go")...)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for n, line := range strings.Split(doctest.Read(t, file), "\n") {
			_, said, isGo := strings.Cut(line, "// ")
			if !isGo {
				_, said, _ = strings.Cut(line, "-- ")
			}
			for words, instead := range avoided {
				if found := words.FindString(said); found != "" {
					t.Errorf("%s:%d says %q; better: %s", file, n+1, found, instead)
				}
			}
		}
	}
	if len(files) < 600 {
		t.Errorf("only %d files", len(files))
	}
}

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
