// This file says of what, when and on how busy a machine something is measured.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// identity is what distinguishes a run from others.
type identity struct {
	began  time.Time
	commit string // "" outside a repository
	dirty  bool
}

// identify asks git which commit this is, and whether its sources were changed.
func identify(ctx context.Context) identity {
	this := identity{began: time.Now().UTC().Truncate(time.Second)}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return this
	}
	this.commit = strings.TrimSpace(string(commit))
	// A run changes the page and the figures, which are not what is measured.
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--",
		":/*.go", ":/*.lua", ":/*.java", ":/*go.mod", ":/*go.sum").Output()
	this.dirty = err != nil || len(changed) > 0
	return this
}

func (i identity) String() string {
	switch {
	case i.commit == "":
		return "a commit that is not known"
	case i.dirty:
		return "commit " + i.commit + " with changes"
	}
	return "commit " + i.commit
}

// moment begins a workload.
func (i identity) moment(rounds int) *report.Moment {
	return &report.Moment{Began: time.Now().UTC().Truncate(time.Second), Run: i.began, Commit: i.commit, Dirty: i.dirty,
		Rounds: rounds, Load: load()}
}

// load returns the load of the machine over the last minute, -1 where it is not known.
func load() float64 {
	load := -1.0
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if _, err := fmt.Sscan(string(text), &load); err != nil {
			return -1
		}
	}
	return load
}
