package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// brokenHandler panics in one of its methods.
type brokenHandler struct {
	slog.Handler
	method string
}

func (h brokenHandler) check(method string) {
	if h.method == method {
		panic(method + " is broken")
	}
}

func (h brokenHandler) Enabled(ctx context.Context, l slog.Level) bool {
	h.check("Enabled")
	return h.Handler.Enabled(ctx, l)
}

func (h brokenHandler) Handle(ctx context.Context, r slog.Record) error {
	h.check("Handle")
	return h.Handler.Handle(ctx, r)
}

func (h brokenHandler) WithAttrs(as []slog.Attr) slog.Handler {
	h.check("WithAttrs")
	return brokenHandler{h.Handler.WithAttrs(as), h.method}
}

func (h brokenHandler) WithGroup(name string) slog.Handler {
	h.check("WithGroup")
	return brokenHandler{h.Handler.WithGroup(name), h.method}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	for method, written := range map[string]bool{"": true, "Enabled": false, "Handle": false, "WithAttrs": true, "WithGroup": true} {
		var out bytes.Buffer
		l := Logger(slog.New(brokenHandler{slog.NewTextHandler(&out, nil), method}))
		l.With("queue", "q").WithGroup("g").Warn("handler failed", "error", errors.New("boom"))
		if got := strings.Contains(out.String(), "handler failed"); got != written {
			t.Errorf("%s is broken: written %t, want %t: %s", method, got, written, &out)
		}
	}
}

func TestLoggerOfABrokenValue(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := Logger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Warn("first", "value", slog.AnyValue(brokenValue{}))
	l.Warn("second")
	if !strings.Contains(out.String(), "second") {
		t.Errorf("nothing is logged after a value that panics: %s", &out)
	}
}

type brokenValue struct{}

func (brokenValue) LogValue() slog.Value { panic("LogValue is broken") }

func TestLoggerDefault(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	Logger(nil).Warn("to the default")
	if !strings.Contains(out.String(), "to the default") {
		t.Errorf("got %q, want the default logger to be used", &out)
	}
}
