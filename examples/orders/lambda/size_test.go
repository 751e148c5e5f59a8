package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxGrowth is how much larger the bootstrap may be than the same handler on aws-lambda-go without package lambda. A cold
// start loads the whole file.
const maxGrowth = 1.10

// TestBootstrapSize builds this command and testdata/bare as they are deployed.
func TestBootstrapSize(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds two commands for another processor")
	}
	ours, bare := size(t, "."), size(t, "./testdata/bare")
	growth := float64(ours) / float64(bare)
	t.Logf("bootstrap %d bytes, bare %d: %.1f%% larger", ours, bare, 100*(growth-1))
	if growth > maxGrowth {
		t.Errorf("the bootstrap has %d bytes, %.3f times the %d of testdata/bare; want at most %.2f times", ours, growth, bare, maxGrowth)
	}
}

func size(t *testing.T, pkg string) int64 {
	t.Helper()
	out := filepath.Join(t.TempDir(), "bootstrap")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, text)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
