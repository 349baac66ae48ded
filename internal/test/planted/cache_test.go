// The go command's build cache of these tests. Each bug makes the go command compile every package
// above it anew, some 90 MB: in the user's own cache that would stay for days.

package planted

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// cache is a folder for what is compiled, and what is in it without any bug. Tests of this package
// do not run side by side.
type cache struct {
	dir  string
	kept map[string]bool // by file
	warm map[string]bool // by package
}

// compiled is the cache of this run. TestMain makes it and removes it.
var compiled cache

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		panic(err)
	}
	compiled = cache{dir: dir, kept: make(map[string]bool), warm: make(map[string]bool)}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// command returns a go command that works on the module with this cache. When the test ends, what
// the command has compiled is removed, but for what the package needs without any bug. pkg is the
// package that will be compiled.
func (c *cache) command(ctx context.Context, t *testing.T, pkg string, args ...string) *exec.Cmd {
	t.Helper()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOCACHE="+c.dir)
		return cmd
	}
	if !c.warm[pkg] {
		if out, err := command("test", "-vet=off", "-run=^$", "./"+pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		c.files(t, func(file string) { c.kept[file] = true })
		c.warm[pkg] = true
	}
	t.Cleanup(func() {
		c.files(t, func(file string) {
			if !c.kept[file] {
				_ = os.Remove(file)
			}
		})
	})
	return command(args...)
}

// files calls back with each file of the cache.
func (c *cache) files(t *testing.T, each func(file string)) {
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			each(path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
