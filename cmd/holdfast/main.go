// The holdfast command runs programs under Holdfast's locks, and shows who holds what.
//
//	cd cmd/holdfast && go install .
//	holdfast run nightly-report -- ./report --all
//
// docs/cli.md describes each of its commands.
package main

import (
	"os"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Args[1:]))
}
