package interop_test

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The exact packages are in the lock file.
//
//go:embed package.json package-lock.json powertools.mjs
var files embed.FS

var installed = sync.OnceValues(installPowertools)

// install returns the folder with Powertools. Where it cannot be installed the test is skipped and says so, and fails
// with EMULATORS=required in the environment.
func install(t *testing.T) string {
	t.Helper()
	dir, err := installed()
	switch {
	case err == nil:
		return dir
	case os.Getenv("EMULATORS") == "required":
		t.Fatalf("EMULATORS=required, and Powertools cannot be installed: %v", err)
	default:
		t.Skipf("Powertools is not tested against: %v", err)
	}
	return ""
}

// installPowertools lets npm install what the lock file says, in the user's cache folder, named by the files' contents.
func installPowertools() (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", err
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name, err := digest()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "sqsonce", "interop", "powertools-"+name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	// Made under another name and then renamed: what has the name is complete.
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, "made")
	if err := os.CopyFS(made, files); err != nil {
		return "", err
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = made
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w: %s", err, out)
	}
	// Another process may have been faster.
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

func digest() (string, error) {
	h := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json", "powertools.mjs"} {
		raw, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(raw), raw)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
