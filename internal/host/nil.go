package host

import "reflect"

// IsNil reports whether an argument is nil, or an interface around a nil such as that of a *Store that was never set: only
// the first one equals nil, and the methods of the other panic when they are called.
func IsNil(arg any) bool {
	v := reflect.ValueOf(arg)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}
