package emulator

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// assets are the files that say what exactly is installed: lock files, and the script that moves fauxqs's clock.
//
//go:embed assets
var assets embed.FS

// marker is the file that is written last, with the digest of the assets: a folder without it, or with another digest, is
// an installation that was interrupted or is out of date.
const marker = ".installed"

// Dir returns the folder of the installation, below the user's cache folder.
func (e *Emulator) Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	return filepath.Join(cache, "sqsonce", "emulators", e.String()), nil
}

// Installed reports whether the emulator is there, whole and with the assets of this package.
func (e *Emulator) Installed() bool {
	dir, err := e.Dir()
	if err != nil {
		return false
	}
	got, err := os.ReadFile(filepath.Join(dir, marker))
	return err == nil && string(got) == e.digest()
}

// Install installs the emulator unless it is there. Processes that install it at the same time wait for one another.
func (e *Emulator) Install(ctx context.Context) error {
	if e.Installed() {
		return nil
	}
	dir, err := e.Dir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return fmt.Errorf("emulator: locking %s: %w", e, err)
	}
	defer unlock()
	if e.Installed() { // by the process that had the lock before
		return nil
	}
	if err := e.fill(ctx, dir); err != nil {
		return fmt.Errorf("emulator: installing %s, which needs %s: %w", e, e.needs, err)
	}
	return nil
}

func (e *Emulator) fill(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	files, err := fs.Sub(assets, "assets/"+e.Name)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	if err := e.install(ctx, dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte(e.digest()), 0o644)
}

// digest is of the names and contents of the emulator's assets.
func (e *Emulator) digest() string {
	h := sha256.New()
	err := fs.WalkDir(assets, "assets/"+e.Name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := assets.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		panic(err) // the files are in the program
	}
	return hex.EncodeToString(h.Sum(nil))
}

// lockPoll is how often a process looks whether another has finished installing.
const lockPoll = 200 * time.Millisecond

// lock takes the lock file, waiting for others until ctx ends. The system frees it when the process ends, however it ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := tryLock(f)
		if ok {
			return func() { _ = f.Close() }, nil // closing frees the lock; nothing was written
		}
		if err == nil {
			select {
			case <-time.After(lockPoll):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		_ = f.Close() // the lock's error is the one to report
		return nil, err
	}
}
