// This parser finds where a RESP frame ends. It knows just enough of RESP2 and RESP3 to cut a byte
// stream into whole commands and replies.

package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errProtocol marks bytes that are not RESP, as opposed to a connection that ended.
var errProtocol = errors.New("not RESP")

// frame is one whole command or reply.
type frame struct {
	raw   []byte
	kind  byte     // the type byte, after any attribute: '*', '$', '>' ...
	words []string // the first text elements of an array or push
}

// readFrame reads one frame and keeps up to limit of its top-level words, or all of them if limit
// is negative. A line that begins with no type byte is an inline command.
func readFrame(r *bufio.Reader, limit int) (frame, error) {
	p := frameParser{r: r, limit: limit}
	err := p.value(0)
	return p.frame, err
}

type frameParser struct {
	frame
	r     *bufio.Reader
	limit int
}

func (p *frameParser) value(depth int) error {
	line, err := p.r.ReadBytes('\n')
	if err != nil {
		return err
	}
	p.raw = append(p.raw, line...)
	if depth == 0 {
		p.kind = line[0]
	}
	text := strings.TrimRight(string(line[1:]), "\r\n")
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		p.word(depth, text)
		return nil
	case '$', '=', '!':
		return p.bulk(depth, text)
	case '*', '~', '>':
		return p.elements(text, 1, depth+1)
	case '%':
		return p.elements(text, 2, depth+1)
	case '|': // an attribute precedes the value it belongs to
		if err := p.elements(text, 2, depth+2); err != nil {
			return err
		}
		return p.value(depth)
	}
	if depth == 0 {
		p.kind = 0
		p.words = strings.Fields(string(line))
		return nil
	}
	return fmt.Errorf("%w: type byte %q", errProtocol, line[0])
}

func (p *frameParser) elements(count string, each, depth int) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("%w: length %q", errProtocol, count)
	}
	for range max(0, n) * each {
		if err := p.value(depth); err != nil {
			return err
		}
	}
	return nil
}

func (p *frameParser) bulk(depth int, length string) error {
	n, err := strconv.Atoi(length)
	if err != nil {
		return fmt.Errorf("%w: length %q", errProtocol, length)
	}
	if n < 0 {
		p.word(depth, "")
		return nil
	}
	start := len(p.raw)
	p.raw = append(p.raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(p.r, p.raw[start:]); err != nil {
		return err
	}
	p.word(depth, string(p.raw[start:start+n]))
	return nil
}

// word keeps an element of the outermost array. Attributes are parsed one level deeper, so
// their elements are never taken for it.
func (p *frameParser) word(depth int, text string) {
	if depth == 1 && (p.limit < 0 || len(p.words) < p.limit) {
		p.words = append(p.words, text)
	}
}
