// These tests show what becomes of a result on its way through the Codec.

package once_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/once"
)

type receipt struct {
	ID    int               `json:"id"`
	Lines map[string]string `json:"lines,omitempty"`
}

// roundTrip has one process do the work, and another get its result.
func roundTrip[T any](t *testing.T, w *world.World, key, stored string, value T, options ...once.Option) {
	t.Helper()
	for i, p := range w.Processes {
		got, err := once.Value(t.Context(), p.Once("codec", options...), key, func(context.Context) (T, error) {
			if i > 0 {
				t.Errorf("%s: done again", key)
			}
			return value, nil
		})
		if err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %v, %v, want %v", key, got, err, value)
		}
	}
	if got := w.RDB.HGet(t.Context(), "holdfast_once:{codec:"+key+"}", "result").Val(); got != stored {
		t.Errorf("%s is stored as %q, want %q", key, got, stored)
	}
}

func TestCodec(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, _, _ *world.Process) {
		roundTrip(t, w, "struct", `{"id":7,"lines":{"a":"b"}}`, receipt{7, map[string]string{"a": "b"}})
		roundTrip(t, w, "pointer", `{"id":7}`, &receipt{ID: 7})
		roundTrip(t, w, "nil pointer", `null`, (*receipt)(nil))
		roundTrip(t, w, "number", `42`, 42)
		roundTrip(t, w, "string", "a \r\n\x00 \xff", "a \r\n\x00 \xff")
		roundTrip(t, w, "no string", "", "")
		roundTrip(t, w, "bytes", "\x00\xff", []byte{0, 255})
		roundTrip(t, w, "no bytes", "", []byte{})
		roundTrip(t, w, "raw", `{"a": 1}`, json.RawMessage(`{"a": 1}`), once.UseCodec(rawCodec{}))
	})
}

// Of an interface type every other caller gets what JSON makes of the result, whatever that is.
func TestCodec_AnInterfaceType(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		for i, result := range []any{
			"hello", "123", "true", "null", "", []byte("[1,2]"), []byte("x"), 7, 1.5, nil, map[string]any{"a": 1.0},
		} {
			of := fmt.Sprint(i)
			first, err := once.Value(t.Context(), p.Once(name), of, func(context.Context) (any, error) { return result, nil })
			if !reflect.DeepEqual(first, result) || err != nil {
				t.Errorf("%T %v: the first got %T %v, %v", result, result, first, first, err)
			}
			var want any
			text, err := json.Marshal(result)
			if err != nil || json.Unmarshal(text, &want) != nil {
				t.Fatal(err)
			}
			for _, process := range []*world.Process{p, q} {
				got, err := once.Value(t.Context(), process.Once(name), of, func(context.Context) (any, error) { return "again", nil })
				if !reflect.DeepEqual(got, want) || err != nil {
					t.Errorf("%T %v: another got %T %v, %v, want %T %v", result, result, got, got, err, want, want)
				}
			}
		}
		roundTrip(t, w, "a string in any", `"hello"`, any("hello"))
		roundTrip(t, w, "a Stringer", `null`, fmt.Stringer(nil))
	})
}

// rawCodec is a Codec of a program.
type rawCodec struct{}

func (rawCodec) Encode(v any) ([]byte, error) { return v.(json.RawMessage), nil }

func (rawCodec) Decode(data []byte, v any) error {
	*v.(*json.RawMessage) = append(json.RawMessage{}, data...)
	return nil
}

// Each caller has a copy of its own.
func TestCodec_NothingIsShared(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, _ *world.Process) {
		for range 3 {
			got, err := once.Value(t.Context(), p.Once(name), key, func(context.Context) ([]byte, error) { return []byte("abc"), nil })
			if string(got) != "abc" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			got[0] = 'x'
		}
	})
}

func TestCodec_Fails(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		value, err := once.Value(t.Context(), p.Once(name), key, func(context.Context) (func(), error) { return func() {}, nil })
		var unsupported *json.UnsupportedTypeError
		if value == nil || !errors.As(err, &unsupported) || !strings.HasPrefix(err.Error(), `holdfast: encode once "charge:order 7": `) {
			t.Errorf("%v", err)
		}
		if w.Mini.Exists(record) {
			t.Error("something was written")
		}
		if err := once.Do(t.Context(), p.Once(name), key, func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		_, err = once.Value(t.Context(), p.Once(name), key, func(context.Context) (int, error) { return 1, nil })
		if err == nil || !strings.HasPrefix(err.Error(), `holdfast: decode once "charge:order 7": `) {
			t.Errorf("%v", err)
		}
	})
}
