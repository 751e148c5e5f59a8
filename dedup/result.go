package dedup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/host"
)

// resultTooLarge stands in a record instead of a result that is longer than Options.MaxResult. It is not JSON, so a result
// never looks like it.
const resultTooLarge = "result too large: "

// encodeResult returns the data that the record stores for the result that p points to, and why that is not the result itself.
// The error never fails the call: f's effect has happened, and a record without a result is better than the effect again.
func (o *Once) encodeResult(p any) (data []byte, err error) {
	if panicked := host.Recover(func() { data, err = json.Marshal(p) }); panicked != nil {
		err = panicked // of the user's MarshalJSON
	}
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) || bytes.Contains(data, replaced) && !comesBack(p, data) || // not valid: by a MarshalJSON or a RawMessage
		len(data) > 10_000 && !json.Valid(data) { // encoding/json writes what is nested deeper than that, and does not read it
		return nil, errNotKept
	}
	if len(data) > o.o.MaxResult {
		size := fmt.Sprintf("%d bytes, Options.MaxResult is %d", len(data), o.o.MaxResult)
		return []byte(resultTooLarge + size), fmt.Errorf("%w: %s", ErrResultTooLarge, size)
	}
	return data, nil
}

// replaced is the text that encoding/json writes for a byte that is not UTF-8. It writes a U+FFFD of the text itself as it is.
var replaced = []byte(`\ufffd`)

var errNotKept = errors.New("dedup: the result has text that is not UTF-8, or is nested too deeply, which JSON does not keep")

// comesBack reports whether the value that p points to is what data decodes to.
func comesBack(p any, data []byte) (same bool) {
	panicked := host.Recover(func() {
		again := reflect.New(reflect.TypeOf(p).Elem())
		same = json.Unmarshal(data, again.Interface()) == nil && reflect.DeepEqual(p, again.Interface())
	})
	return same && panicked == nil
}

// decodeResult sets out to a stored result.
func decodeResult[T any](data []byte, out *T) error {
	if len(data) == 0 {
		return fmt.Errorf("%w: by a Handler, or its value could not become JSON", ErrNoResult)
	}
	if size, ok := strings.CutPrefix(string(data), resultTooLarge); ok {
		return fmt.Errorf("%w: %s", ErrResultTooLarge, size)
	}
	var err error
	if panicked := host.Recover(func() { err = json.Unmarshal(data, out) }); panicked != nil {
		err = panicked // of the user's UnmarshalJSON
	}
	if err != nil {
		return fmt.Errorf("dedup: stored result does not fit %T: %w", *out, err)
	}
	return nil
}
