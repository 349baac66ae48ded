package barrier

import "github.com/holdfast-go/holdfast/internal/test/redistest"

func runParty(c *redistest.ChildContext) {}
