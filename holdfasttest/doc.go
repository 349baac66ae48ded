// Package holdfasttest helps to test programs that use Holdfast. Its Redis server is in memory, leases on it expire as
// on a real server, and it works inside testing/synctest, where an hour passes in a moment:
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
// The server is miniredis, behind a network whose faults a test chooses. It is a single server: Sentinel, clusters and
// replicas are covered by the tests of Holdfast itself.
package holdfasttest
