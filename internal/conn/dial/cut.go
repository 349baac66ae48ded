// How a connection is cut.

package dial

import "net"

// Drop closes a connection at once. Closing a TLS connection would first write a close-notify
// alert, and wait for that.
func Drop(conn net.Conn) {
	if conn != nil {
		_ = Underneath(conn).Close()
	}
}

// Underneath returns the connection under a TLS connection, and any other connection as it is.
func Underneath(conn net.Conn) net.Conn {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return secured.NetConn()
	}
	return conn
}
