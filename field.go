package sqsonce

import (
	"reflect"
	"strings"
)

// declaredPath returns the longest beginning of a dotted path of JSON names that t's struct fields declare. What follows
// may be a map's key, which the sender chose and which may be personal; also a type's own UnmarshalJSON may report any
// path.
func declaredPath(t reflect.Type, path string) string {
	var declared []string
	for name := range strings.SplitSeq(path, ".") {
		t = element(t)
		if t.Kind() != reflect.Struct {
			break
		}
		field, ok := fieldByJSONName(t, name)
		if !ok {
			break
		}
		declared = append(declared, name)
		t = field.Type
	}
	return strings.Join(declared, ".")
}

// element returns what is left of a type without its pointers, slices and arrays, which have no JSON name. It gives up
// after a few, since a type may be a slice of itself.
func element(t reflect.Type) reflect.Type {
	for range 8 {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			t = t.Elem()
		default:
			return t
		}
	}
	return t
}

func fieldByJSONName(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name || tag == "" && f.Name == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}
