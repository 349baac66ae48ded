// Certificates for servers, proxies and clients that speak TLS.

package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Authority signs certificates for one test. They are for the loopback addresses, and valid for
// an hour.
type Authority struct {
	Trust *x509.CertPool // holds the authority's own certificate

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority whose own certificate is the file ca.crt.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Trust: x509.NewCertPool(), t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.Trust.AddCert(a.cert)
	return a
}

// Issue signs a certificate for the name, for use by servers and clients, writes it to the
// files NAME.crt and NAME.key, and returns both as a pair.
func (a *Authority) Issue(name string) tls.Certificate {
	a.t.Helper()
	a.issue(name, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	pair, err := tls.LoadX509KeyPair(a.Path(name+".crt"), a.Path(name+".key"))
	a.must(err)
	return pair
}

// Path returns where a file of the authority is.
func (a *Authority) Path(file string) string { return filepath.Join(a.dir, file) }

func (a *Authority) issue(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	a.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	a.must(err)
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", private)
	made, err := x509.ParseCertificate(der)
	a.must(err)
	return made, key
}

func (a *Authority) write(file, kind string, data []byte) {
	a.t.Helper()
	a.must(os.WriteFile(a.Path(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("redistest: %v", err)
	}
}

// TLSServer starts a server, as [Server] does, that also accepts TLS on a port of its own, and
// returns that port's address. It lets in any client, unless --tls-auth-clients in args says
// otherwise. It skips t if the server was built without TLS.
func TLSServer(t testing.TB, a *Authority, args ...string) (s *Proc, addr string) {
	t.Helper()
	needsTLS(t)
	a.Issue("server")
	port := freePort(t, false)
	s = Server(t, append(withDefaults(args, "--tls-auth-clients", "no"), "--tls-port", fmt.Sprint(port),
		"--tls-cert-file", a.Path("server.crt"), "--tls-key-file", a.Path("server.key"), "--tls-ca-cert-file", a.Path("ca.crt"))...)
	return s, loopback(port)
}

// needsTLS skips t if the server binary was built without TLS. It starts the binary with a port for TLS and without a
// certificate, so that it ends at once and says why. Valkey without TLS has the settings all the same, and dies of
// them at run time.
func needsTLS(t testing.TB) {
	t.Helper()
	said, _ := exec.CommandContext(Within(t, patience), Needs(t), "--port", "0", "--tls-port", fmt.Sprint(freePort(t, false))).CombinedOutput()
	if strings.Contains(string(said), "Bad directive") || strings.Contains(string(said), "finding TLS support") {
		t.Skip("the server was built without TLS")
	}
}
