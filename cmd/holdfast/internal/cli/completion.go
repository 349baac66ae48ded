// Completion: the names in Redis, and the values of flags, where a shell would offer files.

package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/acl"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

const (
	completesFor  = time.Second // somebody who has only pressed a key waits for it
	completesMost = 200         // names
)

// flagValues are the values of those flags that have a few, by the name of the flag.
func flagValues() map[string][]string {
	return map[string][]string{
		"on-lost": {"end", "leave"},
		"kinds":   acl.Kinds(),
		"sort":    slices.Sorted(maps.Keys(orders)),
	}
}

// completes makes c, and each command below it, complete names and the values of flags.
func (a *app) completes(c *cobra.Command) {
	words := strings.Fields(c.Use)
	if len(words) > 1 && c.ValidArgsFunction == nil {
		switch first := strings.Trim(words[1], "[].…"); first {
		case "NAME", "PATTERN":
			each := strings.HasSuffix(words[1], "...") || strings.HasSuffix(words[1], "...]")
			c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 && !each {
					return nil, behindName(words)
				}
				return a.knownNames(begun), cobra.ShellCompDirectiveNoFileComp
			}
		}
	}
	for name, values := range flagValues() {
		if c.LocalNonPersistentFlags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, below := range c.Commands() {
		a.completes(below)
	}
}

// behindName says what stands behind the name: a program to run, which is a file, or nothing that can be completed.
func behindName(words []string) cobra.ShellCompDirective {
	if slices.Contains(words, "COMMAND") {
		return cobra.ShellCompDirectiveDefault
	}
	return cobra.ShellCompDirectiveNoFileComp
}

// knownNames returns names in Redis that begin so, as many as are found in time. It says nothing of errors: a shell would
// offer them.
func (a *app) knownNames(begun string) (found []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completesFor)
	defer cancel()
	a.timeout = completesFor
	client, shut, err := a.open(ctx)
	if err != nil {
		return nil
	}
	defer shut()
	for i, err := range client.InspectAll(ctx, inspect.Literal(begun)+"*") {
		if err != nil || len(found) == completesMost {
			break
		}
		if view.Name(i.Name) == i.Name { // a shell would have to quote any other
			found = append(found, i.Name)
		}
	}
	slices.Sort(found)
	return found
}
