package dedup

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sqsonce/sqsonce"
)

// Do runs f once for key and replays its result to later calls. The result is stored as JSON, so [json.Marshal] and
// [json.Unmarshal] must keep a T as it is. The call that ran f returns f's own value.
//
// A failed call is not replayed: an error of f releases the record, and the next call runs f again. A result that cannot
// become JSON, or is longer than Options.MaxResult ([ErrResultTooLarge]), is such a failure; f's effect has happened by
// then.
//
// Its errors are those of [Once.Handler], and [ErrNoResult]. Keys are those of the Once's Handler too: a Do with the key
// of a message's event is a duplicate of that message. A handler that calls Do for its own event needs another Once: in
// its own the key is in progress.
func Do[T any](ctx context.Context, o *Once, key string, f func(context.Context) (T, error)) (T, error) {
	var out, zero T
	if key == "" {
		return zero, &sqsonce.FieldError{Package: "dedup", Field: "key", Problem: "is empty"}
	}
	t := task{key: recordKey(o.consumer, key)}
	t.run = func(ctx context.Context, _ Lease) (Result, bool, error) {
		v, err := f(ctx)
		if err != nil {
			return Result{}, false, err
		}
		// Checked before the complete: a store that refused the result would leave the effect without a record.
		data, err := json.Marshal(v)
		if err != nil {
			return Result{}, false, fmt.Errorf("dedup: result cannot be stored as JSON %s: %w", o.record(t.key), err)
		}
		if len(data) > o.o.MaxResult {
			return Result{}, false, fmt.Errorf("%w %s: %d bytes, Options.MaxResult is %d", ErrResultTooLarge, o.record(t.key), len(data), o.o.MaxResult)
		}
		out = v
		return Result{Data: data}, false, nil
	}
	t.replay = func(r Result) error {
		if len(r.Data) == 0 {
			return fmt.Errorf("%w %s: use a key that no Handler completes", ErrNoResult, o.record(t.key))
		}
		if err := json.Unmarshal(r.Data, &out); err != nil {
			return fmt.Errorf("dedup: stored result does not fit %T %s: %w", out, o.record(t.key), err)
		}
		return nil
	}
	if err := o.do(ctx, t); err != nil {
		return zero, err
	}
	return out, nil
}
