// A testing.TB for the test harness, in a program that is not a test.

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// site is a testing.TB for package redistest. It implements only the methods that redistest
// uses.
type site struct {
	testing.TB // nil; it makes this a TB

	mu       sync.Mutex
	problems []string
	cleanups []func()
	dirs     int
	dir      string
}

// onSite runs body on a goroutine of its own, as go test runs a test, cleans up, and returns
// the failures.
func onSite(body func(testing.TB)) []string {
	dir, err := os.MkdirTemp("", "holdfast-torture-")
	if err != nil {
		return []string{err.Error()}
	}
	defer os.RemoveAll(dir)
	s := &site{dir: dir}
	var running sync.WaitGroup
	running.Go(func() { body(s) })
	running.Wait()
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
	return s.problems
}

func (s *site) Helper()      {}
func (s *site) Name() string { return "holdfast-torture" }
func (s *site) Logf(f string, args ...any) {
	fmt.Fprintf(os.Stderr, f+"\n", args...)
}

func (s *site) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *site) TempDir() string {
	s.mu.Lock()
	s.dirs++
	dir := fmt.Sprintf("%s/%d", s.dir, s.dirs)
	s.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.Fatalf("%v", err)
	}
	return dir
}

func (s *site) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *site) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.problems) > 0
}

// Fatalf ends the goroutine that calls it, as in a test.
func (s *site) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

func (s *site) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }

// Skip is a failure, because the user asked for this run.
func (s *site) Skip(args ...any) { s.Fatal(args...) }
