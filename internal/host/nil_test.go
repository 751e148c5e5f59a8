package host

import (
	"errors"
	"io/fs"
	"testing"
)

type handlerFunc func()

func TestIsNil(t *testing.T) {
	t.Parallel()
	var pointer *fs.PathError
	for _, v := range []any{nil, error(nil), error(pointer), handlerFunc(nil), map[string]int(nil), []int(nil), (chan int)(nil)} {
		if !IsNil(v) {
			t.Errorf("IsNil(%T) of a nil: got false", v)
		}
	}
	for _, v := range []any{errors.New("x"), &fs.PathError{}, fs.PathError{}, handlerFunc(func() {}), map[string]int{}, 0, ""} {
		if IsNil(v) {
			t.Errorf("IsNil(%T): got true", v)
		}
	}
}
