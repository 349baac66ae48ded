// This file checks what the project says about versions and modules, in places that nobody compiles.

package repo

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// found returns what the pattern's group finds in a file: every match, in order.
func found(t *testing.T, file, pattern string) []string {
	t.Helper()
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(doctest.Read(t, file), -1) {
		all = append(all, match[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	return all
}

// row returns the cells of the row of docs/support.md that begins with that word.
func row(t *testing.T, first string) []string {
	t.Helper()
	cells := strings.Split(found(t, "docs/support.md", `(?m)^\| `+regexp.QuoteMeta(first)+`\b[^|]*\|(.*)\|$`)[0], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// wanted is a text that a cell of docs/support.md must have.
type wanted struct {
	row  string
	cell int
	text string
}

func TestTheTableOfSupportedVersionsSaysWhatTheTestsUse(t *testing.T) {
	const madeFor, testedOn = 0, 1
	goVersion := found(t, "go.mod", `(?m)^go (\d+\.\d+)`)[0]
	wants := []wanted{
		{"Go", madeFor, goVersion + " and newer"},
		{"Go", testedOn, goVersion},
	}
	for _, module := range []struct{ row, path string }{
		{"go-redis", "github.com/redis/go-redis/v9"},
		{"OpenTelemetry", "go.opentelemetry.io/otel"},
	} {
		version := found(t, "go.mod", `(?m)^\t`+regexp.QuoteMeta(module.path)+` (v\S+)`)[0]
		for _, cell := range []int{madeFor, testedOn} {
			wants = append(wants, wanted{module.row, cell, version})
		}
	}
	for _, server := range []string{"Redis", "Valkey"} {
		for _, version := range found(t, ".ci/servers", `version='`+server+` server v=([\d.]+)'`) {
			wants = append(wants, wanted{server, testedOn, version})
		}
	}
	for _, version := range found(t, "interop/build.go", `(?m)^\t(?:Newest|Last3|Oldest) = "([\d.]+)"`) {
		wants = append(wants, wanted{"Redisson", testedOn, version})
	}
	for _, want := range wants {
		if cell := row(t, want.row)[want.cell]; !strings.Contains(cell, want.text) {
			t.Errorf("docs/support.md: the row of %s says %q, without %q", want.row, cell, want.text)
		}
	}
}

// The version of the scope is that of the newest entry of the changelog.
func TestTheChangelogAndTheScopeHaveOneVersion(t *testing.T) {
	if newest := found(t, "CHANGELOG.md", `(?m)^## \[([^]]+)\]`)[0]; newest != telemetry.Version {
		t.Errorf("CHANGELOG.md begins with %s, and the scope has the version %s", newest, telemetry.Version)
	}
}

func TestTheWorkflowsUseTheVersionsThatAreSupported(t *testing.T) {
	oldest := found(t, "go.mod", `(?m)^go (\S+)`)[0]
	minor := found(t, "go.mod", `(?m)^go (\d+\.\d+)`)[0]
	const ci, nightly = ".github/workflows/ci.yml", ".github/workflows/nightly.yml"
	if got := found(t, nightly, `(?m)^ +go: \["([^"]+)", stable\]`)[0]; got != oldest {
		t.Errorf("%s has Go %s as the oldest, and go.mod %s", nightly, got, oldest)
	}
	known := found(t, ".ci/servers", `(?m)^(\w+)\)$`)
	if got := strings.Split(found(t, nightly, `(?m)^ +server: \[([^]]+)\]`)[0], ", "); !slices.Equal(got, known) {
		t.Errorf("%s runs on %q, and .ci/servers knows %q", nightly, got, known)
	}
	for _, file := range []string{ci, nightly, "deploy/compose.yaml"} {
		for _, image := range found(t, file, `: golang:([\d.]+)`) {
			if image != minor {
				t.Errorf("%s uses the image golang:%s, and go.mod Go %s", file, image, minor)
			}
		}
	}
}

func TestDependabotLooksAtEveryModule(t *testing.T) {
	var want []string
	for _, file := range filesBelow(t, ".", "go.mod") {
		want = append(want, path.Join("/", path.Dir(file)))
	}
	slices.Sort(want)
	got := found(t, ".github/dependabot.yml", `(?m)^      - (/\S*)$`)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("dependabot looks at\n%q\nand the modules are\n%q", got, want)
	}
}

// The tools of a workflow are run by what stands in .ci, so that they can be run here.
func TestTheScriptsOfTheWorkflowsAreThere(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no workflows", err)
	}
	for _, file := range files {
		for _, script := range regexp.MustCompile(`\.ci/\w+`).FindAllString(doctest.Read(t, file), -1) {
			if !strings.HasPrefix(doctest.Read(t, script), "#!") {
				t.Errorf("%s runs %s, which is no script", file, script)
			}
		}
	}
}

// What was made light stays so. Whoever adds takes something away, or raises a bound and says why.
func TestWhatIsLightStaysLight(t *testing.T) {
	words := 0
	for _, page := range documents(t) {
		words += len(strings.Fields(doctest.Read(t, page)))
	}
	tests, records := 0, 0
	root, err := filepath.Glob("*_test.go")
	redistest.Must(t, err)
	for _, file := range root {
		if !strings.HasPrefix(file, "example_") {
			tests++
		}
	}
	for _, file := range filesBelow(t, "docs/decisions", ".md") {
		if file != "docs/decisions/README.md" {
			records++
		}
	}
	for _, tc := range []struct {
		what        string
		many, bound int
	}{
		{"test files in the root folder, without examples", tests, 12},
		{"decision records", records, 45},
		{"words in all documents", words, 95_000},
	} {
		if tc.many == 0 || tc.many > tc.bound {
			t.Errorf("%d %s, want 1 to %d", tc.many, tc.what, tc.bound)
		}
	}
}
