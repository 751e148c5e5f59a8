package fifo_test

import (
	"log/slog"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/fifo"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// logBook is a log that a test reads.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBook) option(o *fifo.Options) {
	o.Logger = slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// count returns the number of lines of a level with a text.
func (b *logBook) count(level, text string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "level="+level) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}
