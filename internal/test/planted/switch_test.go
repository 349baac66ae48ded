// All bugs in one build: each stands beside what it replaces, and a variable of the environment names the one that
// is switched on. So a bug costs a run of its tests, and no build.

package planted

import (
	"context"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// envBug names the bug that is switched on.
const envBug = "HOLDFAST_PLANTED"

// switched is a build of tests with bugs that can be switched: a folder with the test binary of each package, named by
// the path of the package's folder.
type switched string

// binary returns the test binary of a package.
func (s switched) binary(pkg string) string {
	dir, err := filepath.Abs(filepath.Join(root, pkg))
	if err != nil {
		panic(err)
	}
	return filepath.Join(string(s), strings.ReplaceAll(dir, string(filepath.Separator), "+"))
}

// switches returns the build for these bugs.
func switches(t *testing.T, bugs []bug) switched {
	t.Helper()
	dir := t.TempDir()
	keep := filepath.Join(t.TempDir(), "keep")
	script := "#!/bin/sh\nln -f \"$1\" '" + dir + "'/\"$(pwd | tr / +)\"\n"
	if err := os.WriteFile(keep, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"test"}, quickBuild, []string{"-count=1", "-overlay=" + overlay(t, withSwitches(t, bugs)), "-exec=" + keep})
	pkgs := make(map[string]bool)
	for _, b := range bugs {
		if !pkgs[b.pkg()] {
			pkgs[b.pkg()] = true
			args = append(args, "./"+b.pkg())
		}
	}
	if out, err := goCommand(t.Context(), t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return switched(dir)
}

// run runs some tests of a package in their step for at most patience, with this bug switched on.
func (s switched) run(t *testing.T, patience time.Duration, step step, b bug, pkg string, tests []string, flags ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var source map[string]string // of what tests read, or compile
	if b.name != "" {
		source = b.plant(t)
	}
	args := []string{"-test.paniconexit0", "-test.timeout=" + patience.String(), "-test.run=" + pattern(tests)}
	cmd := exec.CommandContext(ctx, s.binary(pkg), append(args, flags...)...)
	cmd.Dir = filepath.Join(root, pkg)
	cmd.Env = append(os.Environ(), envBug+"="+b.name, doctest.EnvOverlay+"="+overlay(t, source))
	return outputOf(t, cmd, step)
}

// withSwitches returns the files that have these bugs, each behind its switch, and a file with the switch itself for
// each of their packages.
func withSwitches(t *testing.T, bugs []bug) map[string]string {
	t.Helper()
	edits := make(map[string][]edit)          // by file
	texts := make(map[string]map[string]text) // by package: the scripts, by the name of their file
	for _, b := range bugs {
		e, d := b.edit(t), find(t, b.at)
		dir := filepath.Dir(e.file)
		if filepath.Ext(e.file) == ".lua" {
			v, _ := embedded(t, e.file)
			dir = filepath.Dir(v.file)
			if renamed := (edit{v.file, v.from, v.from + len("lua"), "original_lua"}); !slices.Contains(edits[v.file], renamed) {
				edits[v.file] = append(edits[v.file], renamed)
			}
			if texts[dir] == nil {
				texts[dir] = make(map[string]text)
			}
			name := strings.TrimSuffix(filepath.Base(e.file), ".lua")
			if texts[dir][name] == nil {
				texts[dir][name] = make(text)
			}
			texts[dir][name][b.name] = edited(read(t, filepath.Join(root, e.file)), []edit{e})
			continue
		}
		if texts[dir] == nil {
			texts[dir] = make(map[string]text)
		}
		source := read(t, filepath.Join(root, e.file))
		body := source[d.body.from:e.from] + e.text + source[e.to:d.body.to]
		run := "func() " + body + "(); return"
		if d.results != "" {
			run = "return func() " + d.results + " " + body + "()"
		}
		guard := fmt.Sprintf("\nif plantedBug == %q { %s }\n", b.name, run)
		edits[e.file] = append(edits[e.file], edit{e.file, d.body.from + 1, d.body.from + 1, guard})
	}
	files := make(map[string]string)
	for file, all := range edits {
		files[file] = edited(read(t, filepath.Join(root, file)), all)
	}
	for dir, scripts := range texts {
		files[filepath.Join(dir, "planted_switch.go")] = switchOf(t, dir, scripts)
	}
	return files
}

// text is a script in place of another, by the name of the bug.
type text map[string]string

// switchOf returns the file of a package that says which bug is switched on.
func switchOf(t *testing.T, dir string, scripts map[string]text) string {
	t.Helper()
	pkg, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "package %s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", pkg.Name, envBug)
	if len(scripts) == 0 {
		return s.String()
	}
	s.WriteString("\nvar lua = func(names ...string) (all string) {\n\tfor _, name := range names {\n\t\tswitch plantedBug + \":\" + name {\n")
	for name, bugs := range scripts {
		for bug, text := range bugs {
			fmt.Fprintf(&s, "\t\tcase %q:\n\t\t\tall += %s\n", bug+":"+name, strconv.Quote(text))
		}
	}
	s.WriteString("\t\tdefault:\n\t\t\tall += original_lua(name)\n\t\t}\n\t}\n\treturn all\n}\n")
	return s.String()
}

// embedded returns the variable that gives the texts of a script's folder, if its package has one.
func embedded(t *testing.T, script string) (lua declaration, ok bool) {
	t.Helper()
	lua, ok = declarationsOf(t, filepath.Dir(filepath.Dir(script)))["lua"]
	return lua, ok
}

// canSwitch reports whether the bug can stand beside what it replaces: it is in the body of a function, or in a script
// of a folder that Texts reads.
func (b bug) canSwitch(t *testing.T) bool {
	t.Helper()
	e, d := b.edit(t), find(t, b.at)
	if filepath.Ext(e.file) == ".lua" {
		_, ok := embedded(t, e.file)
		return ok
	}
	return d.body.from < e.from && e.to < d.body.to
}
