package main

import (
	"strings"
	"testing"
)

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-scenario", "nonsense"})
	if err == nil || !strings.Contains(err.Error(), "worker, dedup, lambda, fifo, outbox, slow, stop, idle, duplicates, bodies, memory") {
		t.Errorf("got %v, want an error that names the scenarios", err)
	}
}
