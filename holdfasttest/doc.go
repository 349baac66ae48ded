// Package holdfasttest tests programs that use Holdfast. Its server is in memory, its leases end, and it works
// inside testing/synctest, where an hour passes in a moment:
//
//	func TestOnlyOneReport(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			s := holdfasttest.New(t)
//			here, elsewhere := s.Client(), s.Client() // two processes
//			...
//			s.HoldElsewhere("report") // somebody else is at it
//			s.Lose(lease)             // the lock is lost under the work
//			s.Down()                  // Redis is gone
//			time.Sleep(time.Minute)
//			s.Up()
//			s.RequireNoLeases()
//		})
//	}
//
// If a test needs only a Locker, Granting, Busy and LosesAfter return one.
//
// The server is miniredis, behind a network whose faults a test chooses. It is a single server: the tests of
// Holdfast itself cover Sentinel, clusters and replicas.
package holdfasttest
