// What tests of the package's users' side need of its inside.

package conn

// serverError is an error reply with these words.
type serverError string

func (e serverError) Error() string { return string(e) }
func (e serverError) RedisError()   {}

// Words returns how an error reply is told, but for its sentinel.
func Words(reply string) string {
	return explained(serverError(reply), nil).Error()
}
