package dedup

import (
	"context"
	"fmt"
	"reflect"

	"github.com/sqsonce/sqsonce"
)

// DoOptions configure one call of [Do].
type DoOptions struct {
	// PayloadHash is a hash of f's input. A call with the key of a completed call and another hash returns
	// [ErrPayloadMismatch], and does not replay the result. Calls without a hash are not compared.
	// Default: none.
	PayloadHash string
}

// Do runs f once for key and replays its result to later calls. The result is stored as JSON. The call that ran f
// returns f's own value.
//
// A failed call is not replayed. An error of f releases the record, and the next call runs f again.
//
// If T is a type that JSON does not keep, Do returns a [*sqsonce.OptionError] that names the field, and does not call f. Such
// types are channels, functions, complex numbers and interfaces (also any and error). So are structs with an unexported field,
// with two fields of one JSON name, or with an embedded type whose MarshalJSON hides the other fields. Types with a MarshalJSON
// or MarshalText of their own need the Unmarshal method too, and are then trusted. A field with the tag json:"-" is left out on
// purpose.
//
// If the result can't be stored, f's effect remains, and the record is completed without the result. The call that ran
// f returns f's value without an error, because f has had its effect, and logs a warning. Later calls return
// [ErrNoResult] if JSON does not keep the value, such as a NaN or text that is not UTF-8. They return
// [ErrResultTooLarge] if the value is longer than Options.MaxResult.
//
// The other errors of Do are those of [Once.Handler]. Do and the Once's Handler share their keys, so a Do with the key
// of a message's event is a duplicate of that message. A handler that calls Do for its own event needs another Once,
// because in its own Once the key is in progress.
func Do[T any](ctx context.Context, o *Once, key string, f func(context.Context) (T, error), optFns ...func(*DoOptions)) (T, error) {
	var out, zero T
	if key == "" {
		return zero, &sqsonce.OptionError{Package: "dedup", Field: "key", Problem: "is empty"}
	}
	if err := checkResultType(reflect.TypeFor[T]()); err != nil {
		return zero, err
	}
	var opts DoOptions
	for _, fn := range optFns {
		fn(&opts)
	}
	t := task{key: recordKey(o.consumer, key), came: o.hooks.arrival(), validation: storable(opts.PayloadHash)}
	t.run = func(ctx context.Context, _ Lease) ending {
		v, err := f(ctx)
		if err != nil {
			return ending{err: err}
		}
		out = v
		// &v: methods with a pointer receiver are used too.
		data, err := o.encodeResult(&v)
		if err != nil {
			o.o.Logger.WarnContext(ctx, "dedup: result not stored: the call that made it returns it, later ones cannot", about(ctx, t.key, "error", err)...)
		}
		return ending{data: data}
	}
	t.replay = func(r Result) error {
		if err := decodeResult(r.Data, &out); err != nil {
			return fmt.Errorf("%w %s", err, o.record(t.key))
		}
		return nil
	}
	if err := o.do(ctx, t); err != nil {
		return zero, err
	}
	return out, nil
}
