// Package programs holds the programs of the pages in docs/from: before, after and, for the time
// between, both. Its tests hold the pages against the programs, run the programs side by side on one
// stock, and show what each library sees where the other holds a lock. The module is nested, so that the
// other libraries stay out of the root's go.mod.
package programs
