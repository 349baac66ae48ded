// The command can be installed by its path and version, once its module requires a version of the library in
// place of the folder above it. This test does what a release does: it publishes both modules, from this
// checkout, to a module proxy that is a folder.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

const (
	library  = "github.com/holdfast-go/holdfast"
	released = "v0.0.0-rehearsal"
)

func TestTheReleasedCommandIsInstalledByItsPath(t *testing.T) {
	redistest.LongRun(t) // it compiles everything, and that takes a minute
	proxy, bin := t.TempDir(), t.TempDir()
	publish(t, proxy, library, "../..")
	publish(t, proxy, library+"/cmd/holdfast", withVersion(t))

	cache := strings.TrimSpace(string(runs(t, exec.Command("go", "env", "GOMODCACHE"))))
	install := exec.Command("go", "install", library+"/cmd/holdfast@"+released)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0", "GOSUMDB=off", "GOMODCACHE="+t.TempDir(),
		"GOFLAGS=-modcacherw", "GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download"))
	runs(t, install)
	if said := string(runs(t, exec.Command(filepath.Join(bin, "holdfast"), "--version"))); !strings.Contains(said, released) {
		t.Errorf("it says that it is %q", said)
	}
}

// publish puts the module of a folder into the proxy.
func publish(t *testing.T, proxy, path, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	redistest.Must(t, err)
	var packed bytes.Buffer
	redistest.Must(t, zip.CreateFromDir(&packed, module.Version{Path: path, Version: released}, dir))
	at := filepath.Join(proxy, path, "@v")
	redistest.Must(t, os.MkdirAll(at, 0o755))
	for name, content := range map[string][]byte{
		"list": []byte(released + "\n"), released + ".info": []byte(`{"Version":"` + released + `"}`),
		released + ".mod": text, released + ".zip": packed.Bytes(),
	} {
		redistest.Must(t, os.WriteFile(filepath.Join(at, name), content, 0o600))
	}
}

// withVersion returns a copy of this module that requires the library by its version, in place of its folder.
func withVersion(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	redistest.Must(t, os.CopyFS(dir, os.DirFS(".")))
	text, err := os.ReadFile("go.mod")
	redistest.Must(t, err)
	mod, err := modfile.Parse("go.mod", text, nil)
	redistest.Must(t, err)
	redistest.Must(t, mod.DropReplace(library, ""))
	redistest.Must(t, mod.AddRequire(library, released))
	mod.Cleanup()
	if len(mod.Replace) > 0 {
		t.Fatal("the module replaces more than the library: it could not be installed")
	}
	text, err = mod.Format()
	redistest.Must(t, err)
	redistest.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o600))
	return dir
}

// runs runs a command, and returns what it printed.
func runs(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, err.(*exec.ExitError).Stderr) //nolint:errorlint // Output says so
	}
	return out
}
