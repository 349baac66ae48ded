// How a command says who it is to those who look at what is held.

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// asFlag adds --as, which names this process. The default is its host and its process id: who looks at a
// lock that is stuck must find the process.
func (a *app) asFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.as, "as", "", `who this is, for those who look at what is held; "-" says nothing (default the host's name and the process id)`)
}

// who returns who this process is, or "".
func (a *app) who() string {
	switch a.as {
	case "-":
		return ""
	case "":
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		return fmt.Sprintf("%s/pid %d", host, os.Getpid())
	}
	return a.as
}

// identity returns the option that names this process.
func (a *app) identity() []holdfast.Option { return []holdfast.Option{holdfast.WithIdentity(a.who())} }
