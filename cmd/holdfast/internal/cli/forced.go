// What a release by force leaves behind: a line on standard error, and a record in Redis for a day.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// mostNamed is how many holders a record names.
const mostNamed = 20

// sayForced says and notes from whom a thing was taken.
func (a *app) sayForced(ctx context.Context, i holdfast.Inspection, from []holdfast.Holder) {
	r := audit.Record{At: i.At.UTC(), By: a.operator(), Where: whence()}
	a.say("%s was taken from %s, by %s, %s, at %s", view.Name(i.Name), heldBy(i, from), view.Text(r.By), view.Text(r.Where),
		r.At.Format(time.RFC3339))
	a.noteForced(ctx, i.Name, r, from)
}

// noteForced notes in Redis from whom a thing was taken. Whether it can be noted changes nothing of the release.
func (a *app) noteForced(ctx context.Context, name string, r audit.Record, from []holdfast.Holder) {
	for n, h := range from {
		if n == mostNamed {
			r.From = append(r.From, fmt.Sprintf("%d more", len(from)-n))
			break
		}
		r.From = append(r.From, view.Holder(h))
	}
	rdb, err := a.second()
	if err == nil {
		err = audit.Write(ctx, rdb, a.access.space(), name, r)
		_ = rdb.Close()
	}
	if err != nil {
		a.say("that is not noted in Redis: %v", err)
	}
}

// operator returns who runs this command: user@host, and what --as says.
func (a *app) operator() string {
	name, host := fmt.Sprintf("uid %d", os.Getuid()), "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudoer := os.Getenv("SUDO_USER"); sudoer != "" && sudoer != name {
		name += " (sudo by " + sudoer + ")"
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	if a.as != "" {
		return name + "@" + host + ", as " + a.as
	}
	return name + "@" + host
}

// whence returns by what a release is done, and from where its user came.
func whence() string {
	text := fmt.Sprintf("holdfast release, pid %d", os.Getpid())
	if from, _, found := strings.Cut(os.Getenv("SSH_CONNECTION"), " "); found {
		text += ", by ssh from " + from
	}
	return text
}

// forcedOf returns what is noted of releases by force; nil if that is not known, and then says so.
func (a *app) forcedOf(ctx context.Context, i holdfast.Inspection) []audit.Record {
	rdb, err := a.second()
	if err != nil {
		return nil
	}
	defer func() { _ = rdb.Close() }()
	all, err := audit.Read(ctx, rdb, a.access.space(), i.Name, i.At)
	switch {
	case errors.Is(err, holdfast.ErrDenied):
		a.say("whether %s was released by force is not known: Redis does not allow to read that", view.Name(i.Name))
		return nil
	case err != nil:
		a.say("whether %s was released by force is not known: %v", view.Name(i.Name), err)
		return nil
	case all == nil:
		return []audit.Record{}
	}
	return all
}
