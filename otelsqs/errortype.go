package otelsqs

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// coded is an error of AWS: the SDK's smithy.APIError, or that of an entry of a batch.
type coded interface {
	error
	ErrorCode() string
}

// errorType returns the attribute error.type of an error.
func (t *Telemetry) errorType(err error) attribute.KeyValue {
	if word := ownErrorType(err); word != "" {
		return semconv.ErrorTypeKey.String(word)
	}
	if retry, ok := errors.AsType[*sqsonce.RetryError](err); ok && retry.Err != nil {
		err = retry.Err // what failed
	}
	if t.userErrorType != nil {
		var word string
		if err := host.Recover(func() { word = t.userErrorType(err) }); err != nil { // else this hook would be off, and with it most of telemetry
			t.errorTypeFailed.Do(func() {
				slog.Error("otelsqs: Options.ErrorType panicked: error.type is _OTHER; this is logged once", host.ErrorAttrs(err)...)
			})
			return semconv.ErrorTypeOther
		}
		return semconv.ErrorTypeKey.String(word)
	}
	if aws, ok := errors.AsType[coded](err); ok {
		return semconv.ErrorTypeKey.String(aws.ErrorCode())
	}
	kv := semconv.ErrorType(err)
	switch kv.Value.AsString() {
	case "*errors.errorString", "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError": // which say nothing
		return semconv.ErrorTypeOther
	}
	return kv
}

// ownErrorType returns the word for an error that sqsonce knows, or "".
func ownErrorType(err error) string {
	if _, ok := errors.AsType[*sqsonce.PanicError](err); ok {
		return "panic"
	}
	if _, ok := errors.AsType[*sqsonce.DecodeError](err); ok {
		return "decode"
	}
	switch {
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lease_lost"
	case errors.Is(err, sqsonce.ErrShutdown):
		return "shutdown"
	case sqsonce.OutcomeOf(err).Reject != nil:
		return "rejected"
	case errors.Is(err, sqsonce.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return ""
}
