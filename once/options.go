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
	// DefaultKeep is how long a result is kept without the option Keep: 24 h.
	DefaultKeep = 24 * time.Hour
	// DefaultMaxSize is the greatest size of a result without the option MaxSize: 1 MiB.
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

// Keep sets how long the result of a key is kept: d, at least 1 ms, from when the work was done. A
// call after that does the work again. The default is DefaultKeep.
func Keep(d time.Duration) Option { return func(s *settings) { s.keep = d } }

// KeepErrors keeps the error of the work for d, at least 1 ms. Meanwhile every call on the key fails,
// with an error that matches ErrWorkFailed and has that error's text, cut after 4 KiB. The caller whose
// work has failed gets the error itself. An error is not kept if the context of the work has ended by
// then. By default errors are not kept: the next caller does its own work.
func KeepErrors(d time.Duration) Option { return func(s *settings) { s.keepErrors = d } }

// Busy says what a call does while another does the work of its key.
type Busy int

const (
	// Wait waits for the result, for as long as ctx allows. It is the default.
	Wait Busy = iota
	// Fail returns an error that matches ErrBusy.
	Fail
)

// OnBusy sets what a call does while another does the work of its key. The default is Wait.
func OnBusy(b Busy) Option { return func(s *settings) { s.busy = b } }

// Pausable makes the Once heed Client.Pause of its name: while the name is paused, no work begins. A caller that would
// do the work waits or fails at once, as OnBusy says; its error matches ErrPaused. Kept results are still returned.
// Pausable costs one more request for each work.
func Pausable() Option { return func(s *settings) { s.pausable = true } }

// Fingerprint binds the key to work on this payload. A call with another payload under the same key
// fails with ErrMismatch, while the work is under way and while its result is kept. Redis keeps the
// SHA-256 of the payload. A call without Fingerprint fits any payload.
func Fingerprint(payload []byte) Option {
	sum := sha256.Sum256(payload)
	return func(s *settings) { s.payload = hex.EncodeToString(sum[:]) }
}

// MaxSize sets how many bytes a result may have, as its Codec makes it. The work of a larger result
// fails with ErrTooLarge, and nothing is written. The default is DefaultMaxSize.
func MaxSize(bytes int) Option { return func(s *settings) { s.maxSize = bytes } }

// UseCodec sets the Codec. The default is JSON. All processes that use the Once must agree on it.
func UseCodec(c Codec) Option { return func(s *settings) { s.codec = c } }

// Lease sets how the work of a key is held while it is done, by the options of package lease. They
// override the Client's defaults. If a process dies in the middle of the work, another takes over
// when the lease is over.
//
// With lease.Replicas, the claim counts only if n replicas have it, and a result that fewer have is returned
// with ErrNotReplicated.
func Lease(options ...lease.Option) Option {
	return func(s *settings) { s.lease = append(s.lease, options...) }
}
