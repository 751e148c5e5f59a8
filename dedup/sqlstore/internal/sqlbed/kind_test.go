package sqlbed

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A field that was forgotten would be a case that the suites leave out.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds {
		for field, value := range reflect.ValueOf(k).Fields() {
			if value.IsZero() != slices.Contains(strings.Fields(k.without), field.Name) {
				t.Errorf("%s: set the field %s, or name it in without", k.Label, field.Name)
			}
		}
	}
}
