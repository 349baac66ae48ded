// The guard is the counter outside the lock that shows overlaps: a file that all processes of a
// test map into their memory.

package interop

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// guard is a list of words of eight bytes, which processes change by atomic additions. Guard.java
// is the Java side of it.
type guard struct {
	path  string
	words *[8]int64
}

const (
	guardInside = iota // the weight of all that are in
	guardLast          // which language was let in last
	guardGo            // then two more: grants to Go, its overlaps, how often Java was before it
	_
	_
	guardJava // the same for Java
)

const languageGo = 1

func newGuard(t *testing.T) *guard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guard")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 8 * 8
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	return &guard{path: path, words: (*[8]int64)(unsafe.Pointer(&memory[0]))}
}

// enter notes that a holder of that weight is in. The holders beside it may weigh up to room.
func (g *guard) enter(weight, room int64) {
	if g.add(guardInside, weight)-weight > room {
		g.add(guardGo+1, 1)
	}
	g.add(guardGo, 1)
	if atomic.SwapInt64(&g.words[guardLast], languageGo) != languageGo {
		g.add(guardGo+2, 1)
	}
}

// leave notes that a holder of that weight leaves.
func (g *guard) leave(weight int64) { g.add(guardInside, -weight) }

func (g *guard) add(word int, n int64) int64 { return atomic.AddInt64(&g.words[word], n) }

// of returns the figures of one language, which guardGo or guardJava selects.
func (g *guard) of(language int) (grants, overlaps, crossings int64) {
	read := func(word int) int64 { return atomic.LoadInt64(&g.words[word]) }
	return read(language), read(language + 1), read(language + 2)
}
