// The flags and variables that say where Redis is, and what it wants to see: passwords and certificates.

package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/address"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// setting is a flag, and the variable that is read if the flag is not given.
type setting struct {
	flag     *pflag.Flag
	variable string
}

// name returns what the value was given by, or "" if it was not given.
func (s setting) name() string {
	switch {
	case s.flag.Changed:
		return "--" + s.flag.Name
	case os.Getenv(s.variable) != "":
		return s.variable
	}
	return ""
}

// read returns the value, or "" if it was not given. A flag that is given is not empty: see sound.
func (s setting) read() string {
	if s.flag.Changed {
		return s.flag.Value.String()
	}
	return os.Getenv(s.variable)
}

// access is all that is needed to reach Redis.
type access struct {
	url, ca, cert, key, insecure, serverName, keyPrefix setting
	redis, sentinels                                    passwords
}

// passwords is where the password of one sort of server comes from, unless the URL has it.
type passwords struct {
	file     setting
	variable string
	text     *string // of the file, once it was read: it may be a pipe, and there may be several servers
}

func accessFlags(flags *pflag.FlagSet) access {
	add := func(name, variable, help string) setting {
		flags.String(name, "", help+": $"+variable)
		return setting{flags.Lookup(name), variable}
	}
	var a access
	flags.String("url", "", "the Redis to use: $HOLDFAST_URL, or "+defaultURL)
	a.url = setting{flags.Lookup("url"), "HOLDFAST_URL"}
	a.ca = add("ca", "HOLDFAST_CA", "the file of the certificates that servers are verified by")
	a.cert = add("cert", "HOLDFAST_CERT", "the file of the certificate to show to servers")
	a.key = add("key", "HOLDFAST_KEY", "the file of its private key, if the file of --cert does not have it")
	a.serverName = add("server-name", "HOLDFAST_SERVER_NAME", "the name that servers' certificates must have")
	a.keyPrefix = add("key-prefix", "HOLDFAST_KEY_PREFIX", "what all keys and channels begin with, as by WithKeyPrefix")
	flags.Bool("insecure", false, "do not verify servers' certificates: $HOLDFAST_INSECURE")
	a.insecure = setting{flags.Lookup("insecure"), "HOLDFAST_INSECURE"}
	a.redis = passwords{
		add("password-file", "HOLDFAST_PASSWORD_FILE", "the file of Redis's password ($HOLDFAST_PASSWORD is one itself)"),
		"HOLDFAST_PASSWORD", new(string),
	}
	a.sentinels = passwords{
		add("sentinel-password-file", "HOLDFAST_SENTINEL_PASSWORD_FILE",
			"the file of the Sentinels' own password ($HOLDFAST_SENTINEL_PASSWORD is one itself)"),
		"HOLDFAST_SENTINEL_PASSWORD", new(string),
	}
	return a
}

// complete adds to an Address what its URL leaves out.
func (a access) complete(at *address.Address) error {
	if err := a.redis.fill(at.Password()); err != nil {
		return err
	}
	if at.Sentinel != nil {
		if err := a.sentinels.fill(&at.Sentinel.SentinelPassword); err != nil {
			return err
		}
	} else if a.sentinels.file.flag.Changed {
		return fmt.Errorf("--%s goes with a URL of Sentinels", a.sentinels.file.flag.Name)
	}
	if c := at.TLS(); c != nil {
		return a.secure(c)
	}
	for _, s := range []setting{a.ca, a.cert, a.key, a.serverName, a.insecure} {
		if name := s.name(); name != "" && s.read() != "false" { // without TLS the password would be sent for all to read
			return fmt.Errorf("%s needs TLS, and %v has none: write rediss://, rediss+cluster:// or rediss+sentinel://", name, at)
		}
	}
	return nil
}

// fill sets a password, unless the URL has one.
func (p passwords) fill(password *string) error {
	if *password != "" {
		if p.file.flag.Changed {
			return fmt.Errorf("there is a password in the URL, and --%s: give one of the two", p.file.flag.Name)
		}
		return nil
	}
	file := p.file.read()
	if file == "" {
		*password = os.Getenv(p.variable)
		return nil
	}
	if *p.text == "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file.name(), err)
		}
		if *p.text = strings.TrimRight(string(text), "\r\n"); *p.text == "" {
			return fmt.Errorf("%s: the file %s has no password", p.file.name(), file)
		}
	}
	*password = *p.text
	return nil
}

// space returns what all keys and channels begin with. A prefix that cannot be is refused by the Client.
func (a access) space() keys.Space { return keys.Space(a.keyPrefix.read()) }

// secure sets by what servers are verified, and what is shown to them.
func (a access) secure(c *tls.Config) error {
	if name := a.serverName.read(); name != "" {
		c.ServerName = name
	}
	return errors.Join(a.trust(c), a.show(c))
}

// trust sets by what servers are verified.
func (a access) trust(c *tls.Config) error {
	if insecure := a.insecure.read(); insecure != "" {
		skip, err := strconv.ParseBool(insecure)
		if err != nil {
			return fmt.Errorf("%s is true or false", a.insecure.name())
		}
		c.InsecureSkipVerify = c.InsecureSkipVerify || skip
	}
	file := a.ca.read()
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", a.ca.name(), err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s: the file %s has no certificate in PEM", a.ca.name(), file)
	}
	return nil
}

// show sets the certificate to show to servers.
func (a access) show(c *tls.Config) error {
	cert, key := a.cert.read(), a.key.read()
	switch {
	case cert == "" && key != "":
		return fmt.Errorf("%s goes with --cert", a.key.name())
	case cert == "":
		return nil
	case key == "":
		key = cert
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s: %w", a.cert.name(), err)
	}
	c.Certificates = []tls.Certificate{pair}
	return nil
}

const accessHelp = `URLs of Redis (--url, $HOLDFAST_URL):
  redis://USER:PASSWORD@HOST:6379/0       one server; rediss:// with TLS
  unix:///run/redis.sock                  one server, by a socket
  redis+cluster://A:6379,B:6379           a cluster; rediss+cluster:// with TLS
  redis+sentinel://A:26379,B:26379/NAME   the master NAME behind Sentinels; rediss+sentinel:// with TLS
Passwords may be in $HOLDFAST_PASSWORD and $HOLDFAST_SENTINEL_PASSWORD. docs/cli.md#connecting has all forms.`
