// A reply: what a script has answered.

package conn

// Reply is the array that a script answers with: Values, if it is Mixed, or else Numbers.
type Reply struct {
	Numbers []int64
	Values  []any
}

// Len returns how many elements there are.
func (r *Reply) Len() int { return len(r.Numbers) + len(r.Values) }

// Number returns an element, and false where there is none or it is none.
func (r *Reply) Number(i int) (n int64, ok bool) {
	switch {
	case i < len(r.Numbers):
		return r.Numbers[i], true
	case i < len(r.Values):
		n, ok = r.Values[i].(int64)
	}
	return n, ok
}

// Text returns an element that is a string, or "" where there is none.
func (r *Reply) Text(i int) string {
	if i >= len(r.Values) {
		return ""
	}
	s, _ := r.Values[i].(string)
	return s
}
