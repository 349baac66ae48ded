// The holdfast command runs programs under Holdfast's locks, and shows who holds what.
//
//	go install github.com/holdfast-go/holdfast/cmd/holdfast@latest
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
