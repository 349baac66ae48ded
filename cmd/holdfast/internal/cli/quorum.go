// The servers of a quorum lock: their URLs, and the connections to them.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/address"
)

// urlList is a flag of several URLs. It never refuses a value: the error of a flag repeats it, passwords and all.
type urlList []string

func (l *urlList) String() string { return count(*l) }
func (l *urlList) Type() string   { return "URLs" }

// count says how many URLs there are, and nothing of them.
func count(urls []string) string {
	if len(urls) == 0 || len(urls) == 1 && urls[0] == "" {
		return ""
	}
	return several(len(urls), "URL", "URLs")
}

func (l *urlList) Set(text string) error {
	*l = append(*l, urlsIn(text)...)
	return nil
}

// urlFile is a flag of a file of several URLs, so that no password stands in the list of processes.
type urlFile []string

func (l *urlFile) String() string { return count(*l) }
func (l *urlFile) Type() string   { return "file" }

func (l *urlFile) Set(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before := len(*l)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			*l = append(*l, urlsIn(line)...)
		}
	}
	if len(*l) == before {
		return errors.New("it has no URL")
	}
	return nil
}

// nextURL finds the comma before a URL. The commas within one are between its hosts, or in its password.
var nextURL = regexp.MustCompile(`\s*,\s*(["']?[A-Za-z][A-Za-z0-9+-]*://)`)

func urlsIn(text string) []string {
	return strings.Split(nextURL.ReplaceAllString(text, "\n$1"), "\n")
}

// openQuorum connects to all servers at once, and returns the quorum lock. So few of them may be out of reach that
// the others are more than half.
func (w *which) openQuorum(ctx context.Context, a *app, name string, lease []holdfast.LeaseOption) (taker, func(), error) {
	all := make([]*address.Address, len(w.quorum))
	for n, text := range w.quorum {
		var err error
		if all[n], err = a.address(text); err != nil {
			return taker{}, nil, err
		}
	}
	clients, shuts, errs := make([]*holdfast.Client, len(all)), make([]func(), len(all)), make([]error, len(all))
	var connecting sync.WaitGroup
	for n, at := range all {
		connecting.Go(func() { clients[n], shuts[n], errs[n] = a.connect(ctx, at, a.identity()...) })
	}
	connecting.Wait()
	shut := func() {
		for _, s := range shuts {
			s()
		}
	}
	if err := tooFew(errs); err != nil {
		shut()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return taker{}, nil, err
	}
	return takes(holdfast.NewQuorum(name, clients, lease...)), shut, nil
}

// tooFew returns an error if half of the servers or more have failed, or if a URL is wrong.
func tooFew(errs []error) error {
	code, failed := codeDenied, 0
	var texts []string
	for _, err := range errs {
		if err == nil {
			continue
		}
		of, _ := codeOf(err)
		if of == codeUsage {
			return err
		}
		if of != codeDenied {
			code = codeUnavailable
		}
		failed++
		texts = append(texts, err.Error())
	}
	if failed*2 < len(errs) {
		return nil
	}
	return &exit{code, fmt.Errorf("%d of %d servers failed: %s", failed, len(errs), strings.Join(texts, "; "))}
}
