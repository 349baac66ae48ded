// How a result becomes bytes, and a result again.

package once

import (
	"encoding/json"
	"reflect"
)

// Codec turns results into bytes and back. A Once may be used by several goroutines at a time, and
// calls its Codec from all of them.
type Codec interface {
	// Encode returns the bytes of a result. The Once keeps them as they are.
	Encode(result any) ([]byte, error)
	// Decode stores in *result, which is a pointer to the type that the caller expects, the result
	// that data stands for. It must not keep data.
	Decode(data []byte, result any) error
}

// JSON is the default Codec: encoding/json, except that a []byte and a string are kept as they are, if that
// is the type T of Value. If T is an interface type, such as any, every result is JSON. Other callers then
// get what JSON makes of it: a float64 for an int, a text in base64 for a []byte. A Codec of your own that
// calls JSON does not see T, so use it only with types that are not interfaces.
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

// encoded returns the bytes of a result of the type T. JSON goes by that type, as it does when it
// decodes: the type of a value in an interface is lost by then.
func encoded[T any](c Codec, result T) ([]byte, error) {
	if _, standard := c.(jsonCodec); standard && reflect.TypeFor[T]().Kind() == reflect.Interface {
		return json.Marshal(result)
	}
	return c.Encode(result)
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
