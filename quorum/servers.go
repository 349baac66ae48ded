// Which servers a quorum is on: what is wrong with them, and what distinguishes them from others.

package quorum

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// fit returns what is wrong with the servers: two of them are one server, as far as the Clients
// show that, or they have locks that a majority does not protect.
func fit(members []Member) error {
	clients, servers := make(map[*engine.Engine]bool), make(map[string]bool)
	for _, m := range members {
		if clients[m.Engine] {
			return fmt.Errorf("a Client was given twice: %w", errs.BadArgument)
		}
		clients[m.Engine] = true
		if server, known := serverOf(m.Engine); known && servers[server] {
			return fmt.Errorf("two Clients are of one server, %s: %w", server, errs.BadArgument)
		} else {
			servers[server] = true
		}
		// With permits, more could be taken on majorities than there are on any server.
		if _, ok := m.Locker.(lease.Placed); !ok {
			return fmt.Errorf("a lock of type %T does not say where it stands: %w", m.Locker, errs.BadArgument)
		}
	}
	return nil
}

// serverOf returns the address of the Client's server, without the database: two databases of a
// server fail together. known is false if the address does not distinguish the server from others,
// for example behind Sentinels.
func serverOf(e *engine.Engine) (server string, known bool) {
	server = e.Conn.Address()
	if i := strings.LastIndexByte(server, '/'); i >= 0 {
		server = server[:i]
	}
	return server, server != "" && server != "FailoverClient"
}

// setOf returns a text that distinguishes the set of servers from any other, in whatever order they
// are given. It has the number of servers, and a hash of the addresses that their Clients were
// given. Processes that give a server different addresses take theirs for different sets. That
// costs them the longest lease when the quorum begins, and nothing else.
func setOf(members []Member) string {
	addresses := make([]string, len(members))
	for i, m := range members {
		addresses[i] = strconv.Quote(m.Engine.Conn.Address())
	}
	slices.Sort(addresses)
	sum := sha256.Sum256([]byte(strings.Join(addresses, ",")))
	return fmt.Sprintf("%d-%x", len(members), sum[:8])
}

// identityOf returns the identity of a Quorum: where its members are, in whatever order they are
// given.
func identityOf(members []Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		if placed, ok := m.Locker.(lease.Placed); ok {
			// The two sides of one lock differ only by their type.
			parts[i] = fmt.Sprintf("%p %T %q", m.Engine, m.Locker, placed.Place())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
