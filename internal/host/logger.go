package host

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/sqsonce/sqsonce"
)

// Logger returns l, or slog.Default() if l is nil.
func Logger(l *slog.Logger) *slog.Logger { return cmp.Or(l, slog.Default()) }

// ErrorAttrs returns the log attributes of an error: error, and stack if it is a panic's.
func ErrorAttrs(err error) []any {
	attrs := []any{"error", err}
	if p, ok := errors.AsType[*sqsonce.PanicError](err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	return attrs
}
