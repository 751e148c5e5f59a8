package awsjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/localstack/internal/jsonscan"
)

// Decode is [Decode] for a struct of zeros. It reports whether all names in the text are known. It reads a text in one pass if it is
// right and all names are known, and has encoding/json read every other one, for its errors and its rules.
func (m *Members) Decode(text []byte, in any) (known bool, err error) {
	s, v := jsonscan.New(text), reflect.ValueOf(in).Elem()
	if utf8.Valid(text) && s.Next() == '{' && m.read(s, v) == nil && s.End() == nil {
		return true, nil
	}
	v.SetZero()
	return false, Decode(text, in)
}

var (
	stringType = reflect.TypeFor[string]()
	errOther   = errors.New("left to encoding/json")
)

// read does the same as encoding/json, or fails.
func (m *Members) read(s *jsonscan.Scanner, v reflect.Value) error {
	if v.Type() == stringType {
		text, err := s.Text()
		v.SetString(text)
		return err
	}
	in := v.Addr().Interface()
	switch own := in.(type) {
	case jsonscan.Unmarshaler:
		return own.ScanJSON(s)
	case json.Unmarshaler, encoding.TextUnmarshaler:
		return json.Unmarshal(s.Scalar(), in)
	}
	if s.Word("null") {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return m.read(s, v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break // Base64
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 4))
		return s.Array(func() error {
			n := v.Len()
			v.Grow(1)
			v.SetLen(n + 1)
			return m.each().read(s, v.Index(n))
		})
	case reflect.Map:
		if v.Type().Key() != stringType {
			return errOther
		}
		v.Set(reflect.MakeMap(v.Type()))
		return s.Object(func(name []byte) error {
			key, value := reflect.ValueOf(string(name)), reflect.New(v.Type().Elem()).Elem()
			if v.MapIndex(key).IsValid() {
				return errOther
			}
			err := m.each().read(s, value)
			v.SetMapIndex(key, value)
			return err
		})
	case reflect.Struct:
		return s.Object(func(name []byte) error {
			known, ok := m.of[string(name)]
			if !ok {
				return errOther
			}
			field, err := v.FieldByIndexErr(known.index)
			if err != nil || !field.IsZero() { // it is there twice
				return errOther
			}
			return known.read(s, field)
		})
	}
	return json.Unmarshal(s.Scalar(), in)
}
