package guard

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// TestHookThatPanicsTwiceAtOnce: it is logged once.
func TestHookThatPanicsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	g := New(log, "test: hook")
	var both, ended sync.WaitGroup
	both.Add(2)
	for range 2 {
		ended.Go(func() {
			g.Call(t.Context(), func() {
				both.Done()
				both.Wait()
				panic("boom")
			})
		})
	}
	ended.Wait()
	if n := strings.Count(b.String(), `hook="test: hook"`); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
}
