// This file builds the Java program with Maven, once for each version of Redisson.

package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// These are the tested versions of Redisson: the newest, the last of 3, and a version from before
// its fenced locks, sharded channels and unlock latches.
const (
	Newest = "4.7.0"
	Last3  = "3.52.0"
	Oldest = "3.14.1"
)

// ErrNoJava says that this machine has no Java or no Maven.
var ErrNoJava = errors.New("no java or no mvn found; apt-get install maven openjdk-17-jdk-headless")

// Build returns the class path of the Java program with that version of Redisson. The first call
// downloads and compiles, which takes a minute or so. After that the program is in
// interop/java/target until the sources change. Without Java or Maven the error matches ErrNoJava.
func Build(ctx context.Context, version string) (classPath string, err error) {
	for _, command := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(command); err != nil {
			return "", ErrNoJava
		}
	}
	project, err := projectDir(ctx)
	if err != nil {
		return "", err
	}
	target := filepath.Join(project, "target", version)
	unlock, err := lockDir(target)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := build(ctx, project, target, version); err != nil {
		return "", fmt.Errorf("interop: build with Redisson %s: %w", version, err)
	}
	return filepath.Join(target, "classes") + ":" + filepath.Join(target, "lib", "*"), nil
}

func build(ctx context.Context, project, target, version string) error {
	sources, err := fingerprint(project)
	if err != nil {
		return err
	}
	stamp := filepath.Join(target, "built-from")
	if built, err := os.ReadFile(stamp); err == nil && bytes.Equal(built, sources) {
		return nil
	}
	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "process-classes", "-Dredisson.version="+version)
	mvn.Dir = project
	if out, err := mvn.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.WriteFile(stamp, sources, 0o600)
}

// projectDir returns the directory of the Java project, which is in this module.
func projectDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/holdfast-go/holdfast/interop").Output()
	if err != nil {
		return "", fmt.Errorf("interop: where is this module: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "java"), nil
}

// fingerprint returns a text that changes when the sources change.
func fingerprint(project string) ([]byte, error) {
	sum := sha256.New()
	sources := os.DirFS(project)
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == "target" {
				return fs.SkipDir
			}
			return nil
		}
		text, err := fs.ReadFile(sources, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	return fmt.Appendf(nil, "%x\n", sum.Sum(nil)), err
}

// lockDir keeps other processes from building in the directory at the same time.
func lockDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}
