// holdfast check: whether Redis keeps what Holdfast promises.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/acl"
)

// checking is what the flags of check say.
type checking struct {
	kinds []string
	acl   bool
	user  string
}

func (a *app) check() *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Find out whether Redis keeps the promises",
		Long: lines(
			"Print what voids the promises of Holdfast on this Redis, one finding a line, and exit with 1 if there is any:",
			"eviction, persistence, replication, and rights that the user lacks for names like NAME.",
			"",
			"A finding that begins with \"note\" voids nothing, and does not count: connections, near the limit of",
			"connections; servers, a quorum of a number of servers that is of no use. An asynchronous replica counts:",
			"a failover may then grant a lock twice.",
			"",
			"Rights are tried out for each kind, with a name of its own beside each NAME. With --kinds only those of the",
			"kinds in use count, and are printed.",
			"",
			"With --acl it asks nobody, and prints the line by which an administrator gives a user what the kinds need for",
			"the names. There NAME may be a pattern: orders:*."),
		Example: "  holdfast check orders:\n  holdfast check 'orders:*' --acl --kinds mutex,semaphore",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := acl.Known(c.kinds); err != nil {
				return usage(err)
			}
			if c.acl {
				return a.printACL(args, c)
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return a.findings(ctx, client, args, c.kinds)
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().StringSliceVar(&c.kinds, "kinds", nil, "the kinds in use: "+strings.Join(acl.Kinds(), ", ")+
		" (default: all; with --acl: mutex)")
	cmd.Flags().BoolVar(&c.acl, "acl", false, "print the ACL SETUSER line for the kinds and the names")
	cmd.Flags().StringVar(&c.user, "user", "holdfast", "with --acl: the user")
	return cmd
}

// voids reports whether a finding voids a promise.
func voids(f holdfast.Finding) bool {
	return f.Problem != holdfast.Connections && f.Problem != holdfast.Servers
}

// findings prints the findings, and returns an error if one voids a promise.
func (a *app) findings(ctx context.Context, client *holdfast.Client, names, kinds []string) error {
	ctx, stop, err := a.whileAnswering(ctx)
	if err != nil {
		return err
	}
	defer stop()
	found, failed := client.Check(ctx, names...)
	found = slices.DeleteFunc(found, func(f holdfast.Finding) bool {
		return f.Problem == holdfast.Rights && f.Kind != "" && len(kinds) > 0 && !slices.Contains(acl.Tried(kinds), f.Kind)
	})
	if err := a.printFindings(found); err != nil {
		return err
	}
	if failed != nil {
		return cmp.Or(context.Cause(ctx), failed)
	}
	if n := len(found) - len(slices.DeleteFunc(slices.Clone(found), voids)); n > 0 {
		return &exit{codeFailed, fmt.Errorf("%s a promise", several(n, "finding voids", "findings void"))}
	}
	return nil
}

func (a *app) printFindings(found []holdfast.Finding) error {
	if a.json {
		for _, f := range found {
			if err := a.printJSON(struct {
				Server  string `json:"server"`
				Problem string `json:"problem"`
				Kind    string `json:"kind,omitempty"`
				Detail  string `json:"detail"`
				Voids   bool   `json:"voids_a_promise"`
			}{f.Server, string(f.Problem), f.Kind, f.Detail, voids(f)}); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, f := range found {
		weight := "void"
		if !voids(f) {
			weight = "note"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", weight, f.Server, f.Problem, f.Detail)
	}
	return w.Flush()
}

// printACL prints the line that gives a user its rights.
func (a *app) printACL(names []string, c checking) error {
	if len(names) == 0 {
		return usage(errors.New("--acl needs the names, or patterns of them: orders:*"))
	}
	if len(c.kinds) == 0 {
		c.kinds = []string{"mutex"}
	}
	at, err := a.target()
	if err != nil {
		return err
	}
	line, err := acl.SetUser(c.user, a.access.space(), names, c.kinds, at.Cluster != nil)
	if err != nil {
		return usage(err)
	}
	return a.print("%s", line)
}
