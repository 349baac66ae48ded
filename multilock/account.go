// What is measured of a MultiLock as a whole. Its members report themselves.

package multilock

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

const kindMulti = "multi"

// ofMulti is what measurements of a MultiLock are of. It has several names, and no group.
var ofMulti = telemetry.Kind{Name: kindMulti}

// account is one hold of a MultiLock, for the metrics that count holds. It is open as long as there
// are leases on the hold.
type account struct {
	told     *telemetry.Telemetry
	name     string
	identity string
	granted  time.Time

	mu     sync.Mutex
	leases int
}

// newAccount opens the account of a new hold, with one lease.
func newAccount(m *MultiLock, told *telemetry.Telemetry) *account {
	told.Active(ofMulti, 1)
	return &account{told: told, name: m.name, identity: m.identity, granted: time.Now(), leases: 1}
}

// add counts one lease more. If no lease is left, it does not, and returns false.
func (a *account) add() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leases == 0 {
		return false
	}
	a.leases++
	return true
}

// count counts the lease's end, once, and reports whether it was the last one.
func (l *Lease) count() (last bool) {
	if l.counted.Swap(true) {
		return false
	}
	l.account.mu.Lock()
	defer l.account.mu.Unlock()
	l.account.leases--
	return l.account.leases == 0
}

// over is called when the lease has ended, however it ended.
func (l *Lease) over() {
	l.tell()
	if l.count() {
		l.account.close(l.Err())
	}
}

// close reports to telemetry how the hold ended; err is nil if it was released. It returns how long
// the hold lasted. If the hold was lost or ended as agreed, telemetry has counted that, and close
// returns StillHeld.
func (a *account) close(err error) time.Duration {
	a.told.Active(ofMulti, -1)
	switch {
	case errors.Is(err, errs.Expired):
		a.told.Expired(ofMulti, time.Since(a.granted))
	case errors.Is(err, errs.Lost):
		a.told.Lost(ofMulti, telemetry.LostMember, 1)
	case errors.Is(err, errs.MaxHold):
		a.told.Lost(ofMulti, telemetry.LostMaxHold, 1)
	case errors.Is(err, errs.Closed):
		a.told.Lost(ofMulti, telemetry.LostClosed, 1)
	default:
		return time.Since(a.granted)
	}
	return telemetry.StillHeld
}
