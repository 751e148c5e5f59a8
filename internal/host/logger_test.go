package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

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
