package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sqsonce/sqsonce"
)

// Logger returns a logger that writes to l, or to slog.Default() if l is nil. A panic of l's handler, or of a value that is
// logged, does not reach the caller: the record is lost, and nothing else.
func Logger(l *slog.Logger) *slog.Logger {
	return slog.New(recoveringHandler{cmp.Or(l, slog.Default()).Handler()})
}

// ErrorAttrs returns the log attributes of an error: error, and stack if it is a panic's.
func ErrorAttrs(err error) []any {
	attrs := []any{"error", err}
	if p, ok := errors.AsType[*sqsonce.PanicError](err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	return attrs
}

type recoveringHandler struct{ next slog.Handler }

func (h recoveringHandler) Enabled(ctx context.Context, level slog.Level) (ok bool) {
	_ = Recover(func() { ok = h.next.Enabled(ctx, level) }) // a handler that panics gets nothing
	return ok
}

func (h recoveringHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	if p := Recover(func() { err = h.next.Handle(ctx, r) }); p != nil {
		return fmt.Errorf("log record lost: %w", p)
	}
	return err
}

func (h recoveringHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := h.next
	_ = Recover(func() { next = h.next.WithAttrs(attrs) }) // without the attributes rather than without the records
	return recoveringHandler{next}
}

func (h recoveringHandler) WithGroup(name string) slog.Handler {
	next := h.next
	_ = Recover(func() { next = h.next.WithGroup(name) })
	return recoveringHandler{next}
}
