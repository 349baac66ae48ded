// On Linux, the threads of the Pulse go back to the runtime.

package redistest

import (
	"sync"
	"testing"
	"time"
)

// A thread that started a server must not end, or the server would be killed. The test uses two
// threads at a time: at least one of them is not the process's first thread, which never ends.
func TestAServerOutlivesThePulse(t *testing.T) {
	Needs(t)
	servers := make([]*Proc, 2)
	var pinned, ended sync.WaitGroup
	pinned.Add(len(servers))
	for i := range servers {
		ended.Go(func() {
			onProcessor(processors()[0], func() {
				pinned.Done()
				pinned.Wait()
				servers[i] = Server(t)
			})
		})
	}
	ended.Wait()
	for range 50 { // a thread takes a moment to end
		for _, s := range servers {
			if s == nil || !s.Running() {
				t.Fatal("a server has ended, or was never started")
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
