// The options of a Once.

package once

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	// DefaultKeep is how long a result is kept if the option Keep is not given: 24 h.
	DefaultKeep = 24 * time.Hour
	// DefaultMaxSize is the greatest size of a result if the option MaxSize is not given: 1 MiB.
	DefaultMaxSize = 1 << 20
)

// Option configures a Once.
type Option func(*settings)

type settings struct {
	keep       time.Duration
	keepErrors time.Duration // 0: errors are not kept
	busy       Busy
	pausable   bool
	payload    string // the fingerprint; "": none
	maxSize    int
	codec      Codec
	lease      []lease.Option
}

func newSettings(options []Option) settings {
	s := settings{keep: DefaultKeep, maxSize: DefaultMaxSize, codec: JSON}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	return s
}

func (s *settings) check() error {
	switch {
	case s.keep < time.Millisecond:
		return fmt.Errorf("a result is kept for %v: %w", s.keep, errs.BadArgument)
	case s.keepErrors != 0 && s.keepErrors < time.Millisecond:
		return fmt.Errorf("an error is kept for %v: %w", s.keepErrors, errs.BadArgument)
	case s.busy != Wait && s.busy != Fail:
		return fmt.Errorf("a Busy of %d: %w", s.busy, errs.BadArgument)
	case s.maxSize < 0:
		return fmt.Errorf("a greatest size of %d bytes: %w", s.maxSize, errs.BadArgument)
	case s.codec == nil:
		return fmt.Errorf("the Codec is nil: %w", errs.BadArgument)
	}
	return nil
}

// Keep sets how long the result of a key is kept after the work was done: d, at least 1 ms. A call after
// that time does the work again. The default is DefaultKeep.
func Keep(d time.Duration) Option { return func(s *settings) { s.keep = d } }

// KeepErrors keeps an error that the work returned for d, at least 1 ms. During that time every call on
// the key fails: its error matches ErrWorkFailed and has the text of the kept error, cut after 4 KiB.
// The caller whose work failed gets the error itself. An error is not kept if the context of the work
// had ended when the work returned. By default errors are not kept: the next caller does its own work.
func KeepErrors(d time.Duration) Option { return func(s *settings) { s.keepErrors = d } }

// Busy says what a call does if another caller is doing the work of its key.
type Busy int

const (
	// Wait waits for the result, for as long as ctx allows. It is the default.
	Wait Busy = iota
	// Fail returns an error that matches ErrBusy.
	Fail
)

// OnBusy sets what a call does if another caller is doing the work of its key. The default is Wait.
func OnBusy(b Busy) Option { return func(s *settings) { s.busy = b } }

// Pausable makes the Once obey Client.Pause: while the name of the Once is paused, no work begins. A caller that would
// do the work waits or fails at once, as OnBusy says, and its error matches ErrPaused. Kept results are returned during
// a pause too. Pausable costs one more request each time that work begins.
func Pausable() Option { return func(s *settings) { s.pausable = true } }

// Fingerprint binds the key to this payload. While the work of a key goes on, or its result is kept, a
// call with the same key and another payload fails with ErrMismatch. Redis stores the SHA-256 of the
// payload. A call without Fingerprint never fails with ErrMismatch.
func Fingerprint(payload []byte) Option {
	sum := sha256.Sum256(payload)
	return func(s *settings) { s.payload = hex.EncodeToString(sum[:]) }
}

// MaxSize sets how many bytes a result may have after its Codec has encoded it. If a result is larger,
// the call that did the work fails with ErrTooLarge, and nothing is stored. The default is
// DefaultMaxSize.
func MaxSize(bytes int) Option { return func(s *settings) { s.maxSize = bytes } }

// UseCodec sets the Codec of the results. The default is JSON. All processes that use the Once must use
// the same Codec.
func UseCodec(c Codec) Option { return func(s *settings) { s.codec = c } }

// Lease sets the lease that a caller has on a key while it does the work, by the options of package
// lease. They override the Client's defaults. If a process dies during the work, another caller does the
// work when the lease is over.
//
// With lease.Replicas(n), work begins only if n replicas have the grant. If fewer than n replicas have the result, the
// caller gets it together with ErrNotReplicated.
func Lease(options ...lease.Option) Option {
	return func(s *settings) { s.lease = append(s.lease, options...) }
}
