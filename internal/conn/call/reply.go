// A reply: the answer of a script.

package call

// Reply is the array with which a script answers: Values if the script is Mixed, Numbers
// otherwise.
type Reply struct {
	Numbers []int64
	Values  []any
}

// Len returns the number of elements.
func (r *Reply) Len() int { return len(r.Numbers) + len(r.Values) }

// Status returns the first element.
func (r *Reply) Status() int64 {
	status, _ := r.Number(0)
	return status
}

// ServerTime returns the server's clock, in microseconds; 0 if the script does not report it.
func (r *Reply) ServerTime() int64 {
	micros, _ := r.Number(1)
	return micros
}

// Head returns the server's clock as ServerTime does, and whether the reply begins as that of a script.
func (r *Reply) Head() (micros int64, ok bool) {
	if _, ok = r.Number(0); !ok {
		return 0, false
	}
	return r.Number(1)
}

// Number returns element i, and false if there is none or if it is not a number.
func (r *Reply) Number(i int) (n int64, ok bool) {
	switch {
	case i < len(r.Numbers):
		return r.Numbers[i], true
	case i < len(r.Values):
		n, ok = r.Values[i].(int64)
	}
	return n, ok
}

// Text returns element i if it is a string, and "" otherwise.
func (r *Reply) Text(i int) string {
	if i >= len(r.Values) {
		return ""
	}
	s, _ := r.Values[i].(string)
	return s
}
