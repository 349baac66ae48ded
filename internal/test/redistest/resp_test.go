package redistest

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

var errStillThere = errors.New("still there")

func TestReadFrameFindsTheEnd(t *testing.T) {
	for _, raw := range []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n",
		"$5\r\nhe\r\no\r\n", "$-1\r\n", "$0\r\n\r\n", "=7\r\ntxt:abc\r\n", "!3\r\nERR\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "*-1\r\n", "*0\r\n",
		"~1\r\n+a\r\n", "%1\r\n+k\r\n*1\r\n+v\r\n", ">2\r\n+message\r\n$-1\r\n",
		"|1\r\n+ttl\r\n:3\r\n*1\r\n+x\r\n",
		"*1\r\n|1\r\n+ttl\r\n:3\r\n+x\r\n",
	} {
		r := bufio.NewReader(strings.NewReader(raw + "+NEXT\r\n"))
		f, err := readFrame(r, 2)
		if err != nil || string(f.raw) != raw {
			t.Errorf("%q: read %q, %v", raw, f.raw, err)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "+NEXT\r\n" {
			t.Errorf("%q: left %q", raw, rest)
		}
	}
}

func TestReadFrameRefusesOtherBytes(t *testing.T) {
	for _, raw := range []string{"*x\r\n", "$y\r\n", "*1\r\nz\r\n"} {
		if _, err := readFrame(bufio.NewReader(strings.NewReader(raw)), -1); !errors.Is(err, errProtocol) {
			t.Errorf("%q: err = %v", raw, err)
		}
	}
	if _, err := readFrame(bufio.NewReader(strings.NewReader("*2\r\n+a\r\n")), -1); !errors.Is(err, io.EOF) {
		t.Errorf("half a frame: err = %v", err)
	}
}
