package attr

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// MarshalJSON returns a map or item in DynamoDB's JSON, with the fields in the order of their names. It returns no errors.
func (m Map) MarshalJSON() ([]byte, error) { return appendFields(nil, m), nil }

// Append appends one value in DynamoDB's JSON, such as {"S":"a"}, to b.
func Append(b []byte, v Value) []byte {
	b = append(b, '{', '"')
	b = append(b, v.Type()...)
	b = append(b, '"', ':')
	switch v := v.(type) {
	case String:
		b = appendString(b, string(v))
	case Number:
		b = appendString(b, string(v))
	case Binary:
		b = appendBinary(b, string(v))
	case Bool:
		b = appendBool(b, bool(v))
	case Null:
		b = appendBool(b, true)
	case StringSet:
		b = appendList(b, v, appendString)
	case NumberSet:
		b = appendList(b, v, func(b []byte, n Number) []byte { return appendString(b, string(n)) })
	case BinarySet:
		b = appendList(b, v, appendBinary)
	case List:
		b = appendList(b, v, Append)
	case Map:
		b = appendFields(b, v)
	}
	return append(b, '}')
}

func appendFields(b []byte, m Map) []byte {
	b = append(b, '{')
	for i, f := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, f.Name)
		b = append(b, ':')
		b = Append(b, f.Value)
	}
	return append(b, '}')
}

func appendList[T any](b []byte, list []T, element func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, e)
	}
	return append(b, ']')
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

func appendBinary(b []byte, s string) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, '"')
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // a string always has a JSON form
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
