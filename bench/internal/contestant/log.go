package contestant

import (
	"log/slog"
	"os"
)

// logger writes what is wrong to standard error, where the bench shows it if a measurement fails.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
