// How a result becomes bytes, and a result again.

package once

import "encoding/json"

// Codec turns results into bytes and back. A Once may be used by several goroutines at a time, and
// calls its Codec from all of them.
type Codec interface {
	// Encode returns the bytes of a result. The Once keeps them as they are.
	Encode(result any) ([]byte, error)
	// Decode stores in *result, which is a pointer to the type that the caller expects, the result
	// that data stands for. It must not keep data.
	Decode(data []byte, result any) error
}

// JSON is the Codec of a Once for which no option says another: encoding/json, except that a []byte
// and a string stand for themselves.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Encode(result any) ([]byte, error) {
	switch result := result.(type) {
	case []byte:
		return result, nil
	case string:
		return []byte(result), nil
	default:
		return json.Marshal(result)
	}
}

func (jsonCodec) Decode(data []byte, result any) error {
	switch result := result.(type) {
	case *[]byte:
		*result = append([]byte{}, data...)
		return nil
	case *string:
		*result = string(data)
		return nil
	default:
		return json.Unmarshal(data, result)
	}
}
