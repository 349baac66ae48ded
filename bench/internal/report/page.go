// This file writes the page, and what else a reader of the figures gets.

package report

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Render writes the tables into performance.md in the folder out, and writes the charts beside the
// figures. The page's own words stay as they are.
func (r *Results) Render(out string) error {
	path := filepath.Join(out, "performance.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page := string(text)
	for _, part := range []struct{ name, text string }{
		{"summary", r.Summary()}, {"runs", r.Runs()}, {"verdicts", r.Verdicts()}, {"contenders", r.Contenders()}, {"tables", r.Tables()},
	} {
		if page, err = Fill(page, part.name, part.text); err != nil {
			return err
		}
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		return err
	}
	return r.Charts(filepath.Join(out, "performance"))
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
