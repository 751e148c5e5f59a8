package testserver

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrometheus(t *testing.T) {
	t.Parallel()
	url := StartPrometheus(t, "global: {scrape_interval: 1s}\n")
	out, err := exec.Command(Promtool(t), "query", "instant", url, "vector(7)").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "=> 7 @") {
		t.Errorf("got %s and %v, want 7", out, err)
	}
	program := filepath.Join(Prometheus.Dir(t), "usr", "bin", "prometheus")
	if _, err := startPrometheus(t, program, "no such setting: 1\n"); err == nil || !strings.Contains(err.Error(), "no such setting") {
		t.Errorf("with a wrong configuration: %v, want an error with the end of the log", err)
	}
}
