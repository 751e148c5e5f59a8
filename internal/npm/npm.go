// Package npm installs npm packages that a lock file pins, for what is compared with programs written for Node.
package npm

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing says that there is no npm or no node here.
var ErrMissing = errors.New("needs node and npm")

// Install returns a folder with the files, which lie beside one another and have a package-lock.json among them, and with
// the packages that it names. The folder is in the user's cache, outside the tree, at name and the digest of the files,
// and is made once.
func Install(ctx context.Context, name string, files embed.FS) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
	sum, err := digest(files)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "sqsonce", filepath.FromSlash(name)+"-"+sum)
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
	if err := fill(ctx, tmp, files); err != nil {
		return "", err
	}
	// Another process may have been faster.
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// fill writes the files and lets npm install what the lock file says, without running anything of it.
func fill(ctx context.Context, dir string, files embed.FS) error {
	entries, err := files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		raw, err := files.ReadFile(e.Name())
		if err != nil {
			return err
		}
		// Lambda starts a bootstrap as a program.
		if err := os.WriteFile(filepath.Join(dir, e.Name()), raw, 0o755); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func digest(files embed.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := files.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(raw), raw)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
