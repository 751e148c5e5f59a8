//go:build unix

package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

const imageVersion = "v9.9.9"

// imageFlags are the flags of the linker in the image's Dockerfile.
func imageFlags() (string, error) {
	text, err := os.ReadFile("../../../deploy/localaws.Dockerfile")
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`go build .*-ldflags "([^"]+)"`).FindSubmatch(text)
	if m == nil {
		return "", errors.New("deploy/localaws.Dockerfile builds without -ldflags")
	}
	return strings.ReplaceAll(string(m[1]), "$VERSION", imageVersion), nil
}

// The image's program knows its version. Its health check asks the address of its environment.
func TestImage(t *testing.T) {
	t.Parallel()
	path := program(t, "localaws")
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "LOCALAWS_ADDR=127.0.0.1:0")
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if it has exited
		_ = cmd.Wait()         // it was killed
	})
	url := strings.TrimSpace(must.Get(bufio.NewReader(stdout).ReadString('\n'))(t))
	if _, body := do(t, http.MethodGet, url+"/_localaws/health", nil, nil); !strings.Contains(body, `"version":"`+imageVersion+`"`) {
		t.Errorf("health: %s, want the version %s", body, imageVersion)
	}
	for addr, healthy := range map[string]bool{strings.TrimPrefix(url, "http://"): true, "127.0.0.1:1": false} {
		check := exec.CommandContext(t.Context(), path, "health")
		check.Env = append(os.Environ(), "LOCALAWS_ADDR="+addr)
		if out, err := check.CombinedOutput(); (err == nil) != healthy {
			t.Errorf("health of %s: %v %s, want healthy: %t", addr, err, out, healthy)
		}
	}
}
