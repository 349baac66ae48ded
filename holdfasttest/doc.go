// Package holdfasttest helps to test programs that use Holdfast. New starts a Redis server in memory, on
// which leases expire as on a real server. The server also works inside testing/synctest, where an hour
// passes in a moment:
//
//	func TestOnlyOneReport(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			s := holdfasttest.New(t)
//			here, elsewhere := s.Client(), s.Client() // two processes
//			...
//			s.HoldElsewhere("report") // another process holds the lock
//			s.Lose(lease)             // the lease is lost during the work
//			s.Down()                  // Redis is gone
//			time.Sleep(time.Minute)
//			s.Up()
//			s.RequireNoLeases()
//		})
//	}
//
// If a test needs only a Locker and no server, use Granting, Busy or LosesAfter.
//
// The server is miniredis. Between the Clients and the server is a network, and the test chooses the
// faults of this network. The server is a single one. Sentinel, clusters and replicas are covered by the
// tests of Holdfast itself.
package holdfasttest
