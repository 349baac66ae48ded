// This file runs the workloads of cmd/scale, a program with processes and a server of its own.

package crew

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// scaleLimit is how long a run of cmd/scale may take.
const scaleLimit = 6 * time.Minute

// Scale is the program, built.
type Scale struct{ dir string }

// BuildScale builds cmd/scale. The working directory must be in the module.
func BuildScale(ctx context.Context) (*Scale, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	s := &Scale{dir}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary(), "github.com/holdfast-go/holdfast/bench/cmd/scale")
	if out, err := build.CombinedOutput(); err != nil {
		s.Close()
		return nil, fmt.Errorf("build cmd/scale: %w: %s", err, out)
	}
	return s, nil
}

func (s *Scale) binary() string { return filepath.Join(s.dir, "scale") }

// Close deletes the program.
func (s *Scale) Close() { os.RemoveAll(s.dir) }

// Measure runs a workload on that server binary, "" for the usual one. The program's last line has
// the figures.
func (s *Scale) Measure(ctx context.Context, server string, args []string) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, scaleLimit)
	defer cancel()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, s.binary(), args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if server != "" {
		cmd.Env = append(os.Environ(), "HOLDFAST_REDIS_SERVER="+server)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its server
	cmd.WaitDelay = farewell
	err := cmd.Run()
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s: no answer in time", Hung)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, lastLine(complaints.String()))
	}
	text, ok := strings.CutPrefix(lastLine(out.String()), "figures ")
	if !ok {
		return nil, fmt.Errorf("the program ends with %q", lastLine(out.String()))
	}
	var f Figures
	err = json.Unmarshal([]byte(text), &f)
	return f, err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
