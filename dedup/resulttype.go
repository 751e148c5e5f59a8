package dedup

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unicode"

	"github.com/sqsonce/sqsonce"
)

// resultTypes has the answers of checkResultType, which walks each type once: error or nil by reflect.Type.
var resultTypes sync.Map

// checkResultType returns a [*sqsonce.OptionError] for the first part of a type that JSON does not keep.
func checkResultType(t reflect.Type) error {
	known, ok := resultTypes.Load(t)
	if !ok {
		known, _ = resultTypes.LoadOrStore(t, keeper{}.check(t, "T", true))
	}
	err, _ := known.(error)
	return err
}

// keeper has the types that were walked, or are being walked: recursive types end here. A type is another one where its
// values are not addressable, since encoding/json does not call methods with a pointer receiver there.
type keeper map[place]bool

type place struct {
	t           reflect.Type
	addressable bool
}

func (k keeper) check(t reflect.Type, path string, addressable bool) error {
	if k[place{t, addressable}] {
		return nil
	}
	k[place{t, addressable}] = true
	switch t.Kind() {
	case reflect.Pointer:
		return k.check(t.Elem(), path, true)
	case reflect.Interface:
		return notKept(path, t, "is an interface: JSON does not keep the type of its value. Use a concrete type, or json.RawMessage")
	}
	if own, err := ownEncoding(t, path, addressable); own {
		return err
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return notKept(path, t, "has no JSON")
	case reflect.Slice:
		return k.check(t.Elem(), path+"[]", true)
	case reflect.Array:
		return k.check(t.Elem(), path+"[]", addressable)
	case reflect.Map:
		if !keptAsKey(t.Key()) {
			return notKept(path, t, "has keys that JSON does not keep. Use strings, integers, or a type with MarshalText and UnmarshalText")
		}
		return k.check(t.Elem(), path+"[]", false)
	case reflect.Struct:
		return (&fields{keeper: k, names: map[string]bool{}, embedded: map[reflect.Type]bool{t: true}}).check(t, path, addressable)
	}
	return nil
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func encodes(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }

// ownEncoding reports whether a type encodes itself, with an error where that cannot keep it.
func ownEncoding(t reflect.Type, path string, addressable bool) (own bool, err error) {
	p := reflect.PointerTo(t)
	if !encodes(t) && !(addressable && encodes(p)) {
		return false, nil
	}
	if !p.Implements(jsonUnmarshaler) && !p.Implements(textUnmarshaler) {
		return true, notKept(path, t, "has MarshalJSON or MarshalText, and no UnmarshalJSON or UnmarshalText to read it back")
	}
	if f, ok := embedsEncoding(t); ok {
		return true, notKept(path+"."+f.Name, f.Type, "is embedded and encodes itself: its method stands for the whole of "+t.String()+". Give the field a name")
	}
	return true, nil
}

// embedsEncoding returns an embedded field whose methods encode the struct, and would leave out its other fields. Methods of
// the struct's own look the same to reflection, so those are refused beside such a field too.
func embedsEncoding(t reflect.Type) (field reflect.StructField, ok bool) {
	if t.Kind() != reflect.Struct {
		return field, false
	}
	others := false
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Name == "_" || f.Type.Size() == 0 || f.Tag.Get("json") == "-" && !f.Anonymous:
		case !ok && f.Anonymous && (encodes(f.Type) || encodes(reflect.PointerTo(f.Type))):
			field, ok = f, true
		default:
			others = true
		}
	}
	return field, ok && others
}

func keptAsKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return t.Implements(textMarshaler) && reflect.PointerTo(t).Implements(textUnmarshaler)
}

// fields are those of one JSON object: a struct's own, and those of the structs that it embeds.
type fields struct {
	keeper   keeper
	names    map[string]bool
	embedded map[reflect.Type]bool
}

func (s *fields) check(t reflect.Type, path string, addressable bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || f.Name == "_" {
			continue
		}
		if err := s.checkField(t, f, tag, path+"."+f.Name, addressable); err != nil {
			return err
		}
	}
	return nil
}

func (s *fields) checkField(t reflect.Type, f reflect.StructField, tag, path string, addressable bool) error {
	name, _, _ := strings.Cut(tag, ",")
	if strings.ContainsFunc(name, notInName) {
		name = "" // encoding/json takes the field's own name then
	}
	isStruct := f.Type.Kind() == reflect.Struct
	toStruct := f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct
	switch {
	case !f.IsExported() && !(f.Anonymous && isStruct):
		if f.Type.Size() == 0 {
			return nil // there is nothing to keep
		}
		return notKept(path, f.Type, "is unexported: JSON does not keep it. Export it, leave it out on purpose with the tag json:\"-\", or give "+
			t.String()+" MarshalJSON and UnmarshalJSON")
	case f.Anonymous && name == "" && isStruct:
		return s.embed(f.Type, path, addressable)
	case f.Anonymous && name == "" && toStruct:
		return s.embed(f.Type.Elem(), path, true)
	}
	if name == "" {
		name = f.Name
	}
	if s.names[name] {
		return notKept(path, f.Type, "has the JSON name "+name+" of another field: JSON keeps one of them at most")
	}
	s.names[name] = true
	return s.keeper.check(f.Type, path, addressable)
}

// notInName reports whether encoding/json ignores a tag's name with this character.
func notInName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
}

// embed checks the fields of an embedded struct, which JSON has in the outer object.
func (s *fields) embed(t reflect.Type, path string, addressable bool) error {
	if t.Size() == 0 {
		return nil
	}
	if s.embedded[t] {
		return notKept(path, t, "is embedded twice: JSON keeps one of them at most")
	}
	s.embedded[t] = true
	return s.check(t, path, addressable)
}

func notKept(path string, t reflect.Type, problem string) error {
	return &sqsonce.OptionError{Package: "dedup", Field: path, Problem: "(" + t.String() + ") " + problem}
}
