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
	// DefaultKeep is how long a Once keeps a result if the program does not give the option Keep: 24 h.
	DefaultKeep = 24 * time.Hour
	// DefaultMaxSize is the greatest size of a result if the program does not give the option MaxSize: 1
	// MiB.
	DefaultMaxSize = 1 << 20
)

// Option configures a Once. An Option that is given to Client.Once applies only to the Once that
// Client.Once returns.
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

// Keep makes Redis keep the result of a key for d after the work was done. A call with the key that comes
// later than that does the work again. d must be at least 1 ms. The default is DefaultKeep.
func Keep(d time.Duration) Option { return func(s *settings) { s.keep = d } }

// KeepErrors makes Redis keep an error that the work returned, for the time d. While Redis keeps the
// error, every call with the key fails. The error of such a call matches ErrWorkFailed, and has the text
// of the kept error, cut after 4 KiB. The caller whose work failed gets the error that its work returned.
// An error is not kept if the context of the work had ended when the work returned. d must be at least 1
// ms. By default, and if d is 0, Redis keeps no errors, and the next caller does its own work.
func KeepErrors(d time.Duration) Option { return func(s *settings) { s.keepErrors = d } }

// Busy says what a call does if another caller is doing the work of the same key: see OnBusy.
type Busy int

const (
	// Wait makes the call wait for the result of the other caller, as long as ctx allows. It is the
	// default.
	Wait Busy = iota
	// Fail makes the call return at once, with an error that matches ErrBusy.
	Fail
)

// OnBusy sets what a call does if another caller is doing the work of the same key. The default is Wait.
func OnBusy(b Busy) Option { return func(s *settings) { s.busy = b } }

// Pausable makes the Once obey Client.Pause: while the name of the Once is paused, no work begins. By
// default, a caller that would do the work waits until the pause ends. If the caller's ctx ends before the
// pause has ended, the error matches ErrPaused. With OnBusy(Fail), the caller returns at once, and the
// error matches ErrPaused. If Redis keeps a result, callers get this result during a pause too. Pausable
// costs one more request each time that work begins.
func Pausable() Option { return func(s *settings) { s.pausable = true } }

// Fingerprint binds each key that is used with this Once to the given payload. While the work of a key
// goes on, or while its result is kept, a call with the same key and another payload fails with
// ErrMismatch. Redis stores the SHA-256 of the payload. A call on a Once without Fingerprint never fails
// with ErrMismatch.
func Fingerprint(payload []byte) Option {
	sum := sha256.Sum256(payload)
	return func(s *settings) { s.payload = hex.EncodeToString(sum[:]) }
}

// MaxSize sets how many bytes a result may have after the Codec has encoded it. If a result is larger, the
// call that did the work fails with ErrTooLarge, and Redis stores no result. The default is
// DefaultMaxSize.
func MaxSize(bytes int) Option { return func(s *settings) { s.maxSize = bytes } }

// UseCodec sets the Codec that encodes and decodes the results. All processes that use a Once of the same
// name must use the same Codec. The default is JSON.
func UseCodec(c Codec) Option { return func(s *settings) { s.codec = c } }

// Lease sets lease options for the hold that a caller has on a key while it does the work. These options
// override the defaults of the Client. If the process of the caller dies during the work, another caller
// does the work when the lease is over.
//
// With lease.Replicas(n), work begins only if n replicas have acknowledged the grant. If fewer than n
// replicas acknowledge the result, the caller that did the work gets the result together with
// ErrNotReplicated.
func Lease(options ...lease.Option) Option {
	return func(s *settings) { s.lease = append(s.lease, options...) }
}
