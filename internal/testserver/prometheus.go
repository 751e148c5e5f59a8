package testserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Prometheus is Debian's package of Prometheus, with promtool.
var Prometheus = &Package{Name: "prometheus", Version: "2.42.0", folder: "debian", needs: "apt-get and dpkg-deb, on Debian", fill: installDebian}

// Promtool returns the path of promtool, and skips as [Package.Dir] does.
func Promtool(t testing.TB) string {
	t.Helper()
	return filepath.Join(Prometheus.Dir(t), "usr", "bin", "promtool")
}

// StartPrometheus starts a Prometheus with a configuration in YAML for the test, and returns its URL. Without one, the test is
// skipped or fails, as EMULATORS says.
func StartPrometheus(t testing.TB, config string) (url string) {
	t.Helper()
	program := filepath.Join(Prometheus.Dir(t), "usr", "bin", "prometheus")
	url, err := startPrometheus(t, program, config)
	if err != nil {
		t.Fatalf("starting %s: %v", Prometheus, err)
	}
	return url
}

func startPrometheus(t testing.TB, program, config string) (url string, err error) {
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return "", err
	}
	port, reserved, err := ReservePort()
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = reserved.Close() }) // nobody waits for the port
	p, err := startProcess(exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+Host+":"+strconv.Itoa(port), "--log.level=warn"), folder)
	if err != nil {
		return "", err
	}
	t.Cleanup(p.kill)
	ctx, cancel := context.WithTimeoutCause(t.Context(), startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	if err := p.await(ctx, func(ctx context.Context) error { return ready(ctx, localURL(port)+"/-/ready") }); err != nil {
		return "", fmt.Errorf("%w; its log ends:\n%s", err, logEnd(folder))
	}
	return localURL(port), nil
}

// ready returns an error unless the URL answers 200.
func ready(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // it is only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
