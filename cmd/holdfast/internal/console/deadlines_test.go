// Connections that neither send nor read are closed: whoever holds them open keeps nobody out.

package console

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestConnectionsThatKeepSilentAreClosed(t *testing.T) {
	for _, c := range []struct {
		what, sends string
		reads       bool
	}{
		{"a body that does not come", "GET /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", true},
		{"a body without an end", "GET /session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"the same of a page, without the token", "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", true},
		{"a release that does not come", "POST /release HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", true},
		{"nobody reads", strings.Repeat("GET /page/console.css HTTP/1.1\r\nHost: localhost\r\n\r\n", 100), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, func(o *Options) { o.Token = token })
			synctest.Test(t, func(t *testing.T) {
				there, here := net.Pipe()
				pipes := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
				pipes.conns <- there
				server := &http.Server{Handler: s}
				served := make(chan error, 1)
				go func() { served <- server.Serve(pipes) }()
				sent := make(chan error, 1)
				go func() {
					_, err := io.WriteString(here, c.sends)
					sent <- err
				}()
				ended := make(chan error, 1)
				if c.reads {
					go func() {
						_, err := io.Copy(io.Discard, here)
						ended <- err
					}()
				} else {
					ended = sent // what is not read blocks what is sent, until the server gives up
				}
				select {
				case err := <-ended:
					if !c.reads && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("all was taken: %v", err)
					}
				case <-time.After(time.Hour): // of the bubble's clock
					t.Error("after an hour the connection is open")
				}
				_ = here.Close()
				_ = server.Close()
				<-served
			})
		})
	}
}
