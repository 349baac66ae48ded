// This file records what Holdfast sends for pairs, by listening on its connections: so the record
// is what this version sends, and not an outdated copy.

package ceiling

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// command is one command, as a list of its words.
type command struct {
	words []string
	at    time.Time // when it was written
}

// recording is what Holdfast sent for some pairs, on all its connections, in the order in which it
// was written. A release is written when the acquire has been answered. So the order is one in
// which all commands succeed on one connection too.
type recording struct {
	commands []command
	pairs    int64
	calls    map[string]float64 // what the server called
}

// turns is how many pairs each goroutine of a record does. At the end of a record fewer goroutines
// are at work than in its midst, so there must be many.
const turns = 16

// alone is how many locks a record of one goroutine has.
const alone = 64

// recorded returns what the names of the locks in a record begin with. Other names of the same
// length can take their place wherever they stand.
func recorded(name string) string { return name + ":r:" }

// record returns what Holdfast sends for the pairs of that many goroutines, each at a lock of its
// own. Afterwards the server knows the scripts.
func record(ctx context.Context, server *redis.Client, addr, name string, callers int) (recording, error) {
	heard := new(tape)
	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: heard.dial})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	locks, each := callers, turns
	if callers == 1 {
		locks, each = alone, 1
	}
	// The first round connects, and sends the sources of the scripts.
	if err := pairs(ctx, client, name, callers, locks, each); err != nil {
		return recording{}, err
	}
	before, err := measure.Calls(ctx, server)
	if err != nil {
		return recording{}, err
	}
	heard.rewind()
	if err := pairs(ctx, client, name, callers, locks, each); err != nil {
		return recording{}, err
	}
	commands, err := heard.scripts()
	if err != nil {
		return recording{}, err
	}
	calls, err := measure.Calls(ctx, server)
	for name := range calls {
		calls[name] -= before[name]
		// Only scripts are sent again, so only what they call can be compared.
		if calls[name] == 0 || byClients.MatchString(name) {
			delete(calls, name)
		}
	}
	return recording{commands, int64(locks * each), calls}, err
}

// byClients finds the commands that Holdfast's scripts do not call, but that its Client may.
var byClients = regexp.MustCompile(`^(info|ping|hello|auth|select|client|command|cluster|script|config)(\||$)`)

// pairs makes the callers lock and release all locks, each lock as often as each says.
func pairs(ctx context.Context, client *holdfast.Client, name string, callers, locks, each int) error {
	var all sync.WaitGroup
	failed := make([]error, callers)
	begin := make(chan struct{})
	for i := range callers {
		all.Go(func() {
			<-begin
			for lock := i; lock < locks; lock += callers {
				mutex := client.Mutex(fmt.Sprintf("%s%04d", recorded(name), lock))
				for range each {
					lease, err := mutex.Lock(ctx)
					if err == nil {
						err = lease.Release(ctx)
					}
					failed[i] = errors.Join(failed[i], err)
				}
			}
		})
	}
	close(begin)
	all.Wait()
	return errors.Join(failed...)
}

// Sent is a call of a script as Holdfast sends it.
type Sent struct {
	Words  []string  // EVALSHA, the script's name, and so on
	At     time.Time // when it was sent
	Source string    // of the script
}

// AppendTo appends the command as a client sends it, for things of other names, and so that it may be sent an hour
// after the recording.
func (s Sent) AppendTo(b []byte, from, to string) []byte {
	return command{s.Words, s.At}.on(from, to).appendTo(b)
}

// Record returns what a Client at that server sends while it is used, in order, once it has been used before: for other
// names, so that it knows what it has sent before.
func Record(ctx context.Context, addr string, name, warm string, use func(ctx context.Context, c *holdfast.Client, name string) error) ([]Sent, error) {
	heard := new(tape)
	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: heard.dial})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	if err := use(ctx, client, warm); err != nil {
		return nil, err
	}
	sources := heard.sources()
	heard.rewind()
	if err := use(ctx, client, name); err != nil {
		return nil, err
	}
	commands, err := heard.scripts()
	sent := make([]Sent, len(commands))
	for i, c := range commands {
		sent[i] = Sent{c.words, c.at, sources[c.words[1]]}
	}
	return sent, err
}

// tape keeps the commands that are written to the connections that it dials.
type tape struct {
	mu       sync.Mutex // guards the fields below, and what the connections keep
	commands []command
	broken   error
}

func (t *tape) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &taped{Conn: conn, tape: t}, err
}

func (t *tape) rewind() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands = nil
}

// sources returns the sources of the scripts that were sent, by the names that a server gives them.
func (t *tape) sources() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]string)
	for _, c := range t.commands {
		if strings.EqualFold(c.words[0], "eval") {
			sum := sha1.Sum([]byte(c.words[1]))
			all[hex.EncodeToString(sum[:])] = c.words[1]
		}
	}
	return all
}

// scripts returns the calls of scripts.
func (t *tape) scripts() (all []command, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.commands {
		switch {
		case strings.EqualFold(c.words[0], "evalsha"):
			all = append(all, c)
		case strings.EqualFold(c.words[0], "eval"):
			return nil, errors.New("ceiling: Holdfast sends the source of a script again")
		}
	}
	if len(all) == 0 && t.broken == nil {
		return nil, errors.New("ceiling: Holdfast sends no scripts")
	}
	return all, t.broken
}

// taped is a connection with a tape.
type taped struct {
	net.Conn
	tape  *tape
	begun []byte // of a command that is written in several parts
}

// Write implements net.Conn.
func (c *taped) Write(b []byte) (int, error) {
	c.tape.mu.Lock()
	c.begun = append(c.begun, b...)
	for c.tape.broken == nil {
		words, length, err := parse(c.begun)
		c.tape.broken = err
		if length == 0 {
			break
		}
		c.begun = c.begun[length:]
		c.tape.commands = append(c.tape.commands, command{words, time.Now()})
	}
	c.tape.mu.Unlock()
	return c.Conn.Write(b)
}

// parse returns the words of the first command, an array of bulk strings, and its length in bytes.
// The length is 0 if the command is not complete.
func parse(written []byte) (words []string, length int, err error) {
	rest := written
	next := func(kind byte) (n int, ok bool) {
		line, after, found := bytes.Cut(rest, []byte("\r\n"))
		if !found || err != nil {
			return 0, false
		}
		if len(line) == 0 || line[0] != kind {
			err = fmt.Errorf("ceiling: what was written is no command: %q does not begin with %q", line, kind)
			return 0, false
		}
		if n, err = strconv.Atoi(string(line[1:])); err != nil {
			err = fmt.Errorf("ceiling: what was written is no command: %w", err)
			return 0, false
		}
		rest = after
		return n, true
	}
	count, ok := next('*')
	for range count {
		n, isWord := next('$')
		if !isWord || len(rest) < n+len("\r\n") {
			return nil, 0, err
		}
		words = append(words, string(rest[:n]))
		rest = rest[n+len("\r\n"):]
	}
	if !ok || count == 0 {
		return nil, 0, err
	}
	return words, len(written) - len(rest), nil
}

// times finds what may be a time since 1970: in microseconds, or in milliseconds.
var times = regexp.MustCompile(`\d{16}|\d{13}`)

// on returns the call of a script for locks of other names. It moves the not-after of each lock, so
// that the call may be sent at a later time. A not-after is the only time in a call that is later
// than the call itself.
func (c command) on(from, to string) command {
	const hour = time.Hour
	words := make([]string, len(c.words))
	for i, word := range c.words {
		words[i] = strings.ReplaceAll(word, from, to)
		if i < 2 {
			continue // the command, and the hash of the script
		}
		words[i] = times.ReplaceAllStringFunc(words[i], func(digits string) string {
			n, _ := strconv.ParseInt(digits, 10, 64) // they are digits, and not too many
			unit := time.Microsecond
			if len(digits) == 13 {
				unit = time.Millisecond
			}
			now := c.at.UnixNano() / int64(unit)
			if n <= now || n > now+int64(hour/unit) {
				return digits
			}
			return strconv.FormatInt(n+int64(hour/unit), 10)
		})
	}
	return command{words, c.at}
}

// appendTo appends the command as a client sends it.
func (c command) appendTo(b []byte) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(c.words))
	for _, word := range c.words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}
