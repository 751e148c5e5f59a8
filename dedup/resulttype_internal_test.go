package dedup

import (
	"reflect"
	"testing"
)

// Do asks at each call: a type is walked at the first one only.
func TestResultTypeIsCheckedOnce(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[map[string]struct{ A int }](), reflect.TypeFor[chan int]()} {
		first := checkResultType(typ)
		if n := testing.AllocsPerRun(100, func() {
			if err := checkResultType(typ); err != first {
				t.Errorf("%v: got error %v, want the first one, %v", typ, err, first)
			}
		}); n > 0 {
			t.Errorf("%v: %.0f allocations at a later check, want none", typ, n)
		}
	}
}
