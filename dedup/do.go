package dedup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
)

var (
	// ErrResultTooLarge says that a result is longer than Options.MaxResult. The function has run and counts as failed.
	ErrResultTooLarge = errors.New("dedup: result too large to store")
	// ErrNoResult says that the key was completed by something that stores no result, such as a [Once.Handler].
	ErrNoResult = errors.New("dedup: completed without a result")
)

// Do runs f once for key and replays its result to later calls: as JSON, so T must survive [json.Marshal] and
// [json.Unmarshal]. The call that ran f gets f's own value.
//
// A failed call is not replayed: an error of f releases the key, and the next call runs f again. A result that is no
// JSON, or longer than Options.MaxResult ([ErrResultTooLarge]), is such a failure; f's effect has happened by then.
//
// Its errors are those of [Once.Handler]. Keys share the consumer's name space with the messages of a Handler of the
// same Once, so a handler that guards a call of its own by Do uses another Once for it: its own key is in progress.
func Do[T any](ctx context.Context, o *Once, key string, f func(context.Context) (T, error)) (T, error) {
	var out, zero T
	if key == "" {
		return zero, &sqsonce.FieldError{Package: "dedup", Field: "key", Problem: "is empty"}
	}
	t := task{
		key: recordKey(o.consumer, key),
		run: func(ctx context.Context, _ Lease) (Result, bool, error) {
			v, err := f(ctx)
			if err != nil {
				return Result{}, false, err
			}
			// Before the record is completed: a store that refused the result then would have to forget the effect.
			data, err := json.Marshal(v)
			if err != nil {
				return Result{}, false, fmt.Errorf("dedup: result of %s: %w", key, err)
			}
			if len(data) > o.o.MaxResult {
				return Result{}, false, fmt.Errorf("%w: %d bytes of at most %d", ErrResultTooLarge, len(data), o.o.MaxResult)
			}
			out = v
			return Result{Data: data}, false, nil
		},
		replay: func(r Result) error {
			if len(r.Data) == 0 {
				return ErrNoResult
			}
			if err := json.Unmarshal(r.Data, &out); err != nil {
				return fmt.Errorf("dedup: stored result of %s: %w", key, err)
			}
			return nil
		},
	}
	if err := o.do(ctx, t); err != nil {
		return zero, err
	}
	return out, nil
}
