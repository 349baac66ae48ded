// How a result becomes bytes, and a result again.

package once

import (
	"encoding/json"
	"reflect"
)

// Codec turns the results of a Once into bytes, and bytes back into results. Several goroutines may call
// the methods of a Codec at the same time.
type Codec interface {
	// Encode returns the bytes of result. The Once stores these bytes unchanged.
	Encode(result any) ([]byte, error)
	// Decode makes a result from data, and stores that result in *result. result is a pointer to the type
	// that the caller of Value expects. Decode must not keep data after Decode has returned.
	Decode(data []byte, result any) error
}

// JSON is the default Codec. It uses encoding/json, with one exception: if the type T of Value is []byte
// or string, JSON stores the result unchanged. If T is an interface type, such as any, JSON encodes every
// result, even a []byte or a string. Other callers then get the Go type to which encoding/json decodes the
// stored result: for example a float64 for an int, or a string in base64 for a []byte. If a Codec of your
// own calls JSON, JSON does not know T. So use such a Codec only for types that are not interfaces.
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
