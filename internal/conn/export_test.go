// The external tests of this package need some of its internals.

package conn

// MaxRest is the longest pause before a dial.
const MaxRest = maxRest

// serverError is an error reply with these words.
type serverError string

func (e serverError) Error() string { return string(e) }
func (e serverError) RedisError()   {}

// Words returns the text that explains an error reply, without its sentinel.
func Words(reply string) string {
	return explained(serverError(reply), nil).Error()
}
