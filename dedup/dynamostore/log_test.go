package dynamostore

import "log/slog"

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }
