package holdcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	holdcertmagic "github.com/holdfast-go/holdfast/contrib/certmagic"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

const (
	domain = "example.com"
	issue  = "issue_cert_example.com" // certmagic's name of the lock
)

// bubble runs a test in virtual time, with a server and the folder of a storage.
func bubble(t *testing.T, test func(t *testing.T, s *holdfasttest.Server, folder string)) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, holdfasttest.New(t), folder) })
}

func storage(client *holdfast.Client, folder string) *holdcertmagic.Storage {
	return holdcertmagic.New(client, &certmagic.FileStorage{Path: folder})
}

// server returns the certmagic of one server. Its certificates come from issue.
func server(t *testing.T, storage certmagic.Storage, issue issuer) *certmagic.Config {
	t.Helper()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
		Logger:           zap.NewNop(),
	})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{
		Storage: storage,
		Issuers: []certmagic.Issuer{issue},
		Logger:  zap.NewNop(),
	})
	return config
}

// issuer signs by itself, if the function has no error.
type issuer func(ctx context.Context) error

func (issuer) IssuerKey() string { return "test" }

func (i issuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := i(ctx); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     csr.DNSNames,
		NotBefore:    time.Now(),
		NotAfter:     time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestOneServerObtainsTheCertificateAndTheOtherWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		var issued atomic.Int32
		done := make(chan error)
		for range 2 {
			config := server(t, storage(s.Client(), folder), func(context.Context) error {
				issued.Add(1)
				time.Sleep(5 * time.Minute) // renewed meanwhile
				return nil
			})
			go func() { done <- config.ObtainCertAsync(t.Context(), domain) }()
		}
		wantErr(t, errors.Join(<-done, <-done), nil)
		if got := issued.Load(); got != 1 {
			t.Errorf("%d certificates were issued, want 1", got)
		}
		s.RequireNoLeases()
	})
}

func TestWhileAnotherHoldsTheLockNothingIsIssued(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		release := s.HoldElsewhere(holdcertmagic.Prefix + issue)
		var issued atomic.Int32
		here := storage(s.Client(), folder)
		config := server(t, here, func(context.Context) error {
			issued.Add(1)
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := config.ObtainCertSync(ctx, domain); err == nil || issued.Load() != 0 {
			t.Errorf("%v, and %d were issued", err, issued.Load())
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, here.Lock(ctx, issue), holdfast.ErrBusy)
		if ok, err := here.TryLock(t.Context(), issue); ok || err != nil {
			t.Errorf("TryLock: %t, %v", ok, err)
		}
		time.AfterFunc(time.Hour, release)
		if err := config.ObtainCertSync(t.Context(), domain); err != nil || issued.Load() != 1 {
			t.Errorf("%v, and %d were issued", err, issued.Load())
		}
		s.RequireNoLeases()
	})
}

// Certmagic does not stop the attempt. The next attempt takes the lock again.
func TestALostLockIsTakenAgainForTheNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		attempts := 0
		config := server(t, storage(s.Client(), folder), func(ctx context.Context) error {
			attempts++
			s.RequireHeld(holdcertmagic.Prefix + issue)
			if attempts > 1 {
				return nil
			}
			s.Expire(holdcertmagic.Prefix + issue)
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				t.Error("the attempt was stopped")
			}
			return errors.New("the authority is busy")
		})
		wantErr(t, config.ObtainCertAsync(t.Context(), domain), nil)
		if attempts != 2 {
			t.Errorf("%d attempts, want 2", attempts)
		}
		s.RequireNoLeases()
	})
}

// While another server has what was lost, no attempt is made, and its certificate is found.
func TestAfterALossTheCertificateOfAnotherServerIsFound(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		lost, done := make(chan struct{}), make(chan error)
		attempts := 0
		first := server(t, storage(s.Client(), folder), func(context.Context) error {
			attempts++
			s.Expire(holdcertmagic.Prefix + issue)
			close(lost)
			time.Sleep(time.Minute)
			return errors.New("the authority is busy")
		})
		second := server(t, storage(s.Client(), folder), func(context.Context) error {
			time.Sleep(10 * time.Minute)
			return nil
		})
		go func() { done <- first.ObtainCertAsync(t.Context(), domain) }()
		<-lost
		wantErr(t, errors.Join(second.ObtainCertAsync(t.Context(), domain), <-done), nil)
		if attempts != 1 {
			t.Errorf("the first server made %d attempts, want 1", attempts)
		}
		s.RequireNoLeases()
	})
}

// A goroutine that stood still neither renews nor releases what another of its process has locked since.
func TestALateUnlockEndsItsOwnLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		here := storage(s.Client(), folder)
		if here.Unlock(t.Context(), issue) == nil || here.RenewLockLease(t.Context(), issue, time.Hour) == nil {
			t.Error("no error of what is not locked")
		}
		if err := here.Lock(t.Context(), issue); err != nil {
			t.Fatal(err)
		}
		s.Expire(holdcertmagic.Prefix + issue)
		if err := here.Lock(t.Context(), issue); err != nil {
			t.Fatal(err)
		}
		wantErr(t, here.RenewLockLease(t.Context(), issue, time.Hour), holdfast.ErrBusy)
		wantErr(t, here.Unlock(t.Context(), issue), holdfast.ErrLost)
		s.RequireHeld(holdcertmagic.Prefix + issue)
		wantErr(t, here.RenewLockLease(t.Context(), issue, time.Hour), nil)
		wantErr(t, here.Unlock(t.Context(), issue), nil)
		s.RequireNoLeases()
	})
}

func TestWithoutRedisNothingIsIssued(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		here := storage(s.Client(), folder)
		config := server(t, here, func(context.Context) error {
			t.Error("it was issued")
			return nil
		})
		s.Down()
		_, err := here.TryLock(t.Context(), issue)
		wantErr(t, err, holdfast.ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, here.Lock(ctx, issue), holdfast.ErrUnavailable)
		if err := config.ObtainCertAsync(ctx, domain); err == nil {
			t.Error("no error")
		}
	})
}

// The lock outlives an outage that is shorter than its lease, and is taken again after a longer one.
func TestAnOutageUnderTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *holdfasttest.Server, folder string) {
		here := storage(s.Client(), folder)
		if err := here.Lock(t.Context(), issue); err != nil {
			t.Fatal(err)
		}
		for _, outage := range []time.Duration{5 * time.Second, 5 * time.Minute} {
			s.Down()
			time.Sleep(outage)
			s.Up()
			if err := here.RenewLockLease(t.Context(), issue, time.Hour); err != nil {
				t.Errorf("after %v: %v", outage, err)
			}
			s.RequireHeld(holdcertmagic.Prefix + issue)
		}
		wantErr(t, here.Unlock(t.Context(), issue), nil)
		s.RequireNoLeases()
	})
}
