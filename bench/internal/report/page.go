// This file writes the pages, and what else a reader of the figures gets.

package report

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Render writes the summary into performance.md in the folder out, the other tables into performance/measurements.md,
// and the charts beside that. The pages' own words stay as they are.
func (r *Results) Render(out string) error {
	folder := filepath.Join(out, "performance")
	err := errors.Join(
		fillFile(filepath.Join(out, "performance.md"), filled{"summary", r.Summary()}),
		fillFile(filepath.Join(folder, "measurements.md"), filled{"verdicts", r.Verdicts()}, filled{"tables", r.Tables()},
			filled{"contenders", r.Contenders()}, filled{"runs", r.Runs()}),
	)
	if err != nil {
		return err
	}
	return r.Charts(folder)
}

// filled is a part of a page that the program writes.
type filled struct{ name, text string }

func fillFile(path string, parts ...filled) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page := string(text)
	for _, part := range parts {
		if page, err = Fill(page, part.name, part.text); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// ThisMachine describes the machine that this program runs on, and the server that it uses.
func ThisMachine(server, version string) Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Redis: version}
	if server != "Redis" {
		m.Name = server
	}
	info, _ := os.ReadFile("/proc/cpuinfo") // only Linux has it
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
