// Package testlog is for tests: a log that they read while it is written.
package testlog

import (
	"strings"
	"sync"
)

// Book keeps all that is written to it.
type Book struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (b *Book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that was written.
func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
