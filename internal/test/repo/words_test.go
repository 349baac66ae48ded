// Comments use the words that CONTRIBUTING.md asks for.

package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	comment := regexp.MustCompile(`(//|--) .*$`)
	files := 0
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".lua") && (!strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go")) {
			return err
		}
		files++
		source, err := os.ReadFile(file)
		for n, line := range strings.Split(string(source), "\n") {
			for words, instead := range avoided {
				if found := words.FindString(comment.FindString(line)); found != "" {
					t.Errorf("%s:%d says %q; better: %s", file, n+1, found, instead)
				}
			}
		}
		return err
	})
	if err != nil || files < 300 {
		t.Errorf("%d files, %v", files, err)
	}
}
