//go:build !unix

// Shards needs signals, which this system does not have.
package main

import "fmt"

func main() { fmt.Println("this example stops processes by signals, which this system does not have") }
