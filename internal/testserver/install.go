package testserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// installation is a folder in the user's cache that is made once from files, which say at which versions. The digest of
// the files is in the folder's name: checkouts with other files have other folders.
type installation struct {
	name  string // with slashes
	files fs.FS
	// fill installs what the files say in dir, which has the files and nothing else.
	fill func(ctx context.Context, dir string) error
}

// marker is the file that is written last: an installation without it was interrupted.
const marker = ".installed"

func (i installation) dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum, err := digest(i.files)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "sqsonce", filepath.FromSlash(i.name)+"-"+sum), nil
}

func (i installation) complete() bool {
	dir, err := i.dir()
	return err == nil && marked(dir)
}

func marked(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, marker))
	return err == nil
}

// install returns the folder, which it fills unless that is done. Of the processes that install it at the same time, one
// does the work and the others wait.
func (i installation) install(ctx context.Context) (string, error) {
	dir, err := i.dir()
	if err != nil {
		return "", err
	}
	if marked(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for another installation: %w", err)
	}
	defer unlock()
	if marked(dir) { // by the process that had the lock before
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, i.files); err != nil {
		return "", err
	}
	if err := i.fill(ctx, dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}

// digest is of the names and contents of files.
func digest(files fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// lockInterval is the time between two attempts to lock a file.
const lockInterval = 200 * time.Millisecond

// lock locks the file, and waits for other processes and goroutines until ctx ends. The system unlocks it when the process
// ends, however it ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := tryLock(f)
		if ok {
			return func() { _ = f.Close() }, nil // closing unlocks it; nothing was written
		}
		if err == nil {
			select {
			case <-time.After(lockInterval):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		return nil, errors.Join(err, f.Close())
	}
}

// ErrNoNode is the error of [InstallNode] where there is no npm or no node.
var ErrNoNode = errors.New("testserver: needs node and npm")

// InstallNode returns a folder in the user's cache with the files, which are executable, and with the npm packages that
// the package-lock.json among them names. The folder's path has the name, slash-separated, and the digest of the files.
func InstallNode(ctx context.Context, name string, files fs.FS) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoNode, err)
		}
	}
	dir, err := installation{name: name, files: files, fill: func(ctx context.Context, dir string) error {
		copied, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return err
		}
		for _, file := range copied {
			if err := os.Chmod(file, 0o755); err != nil { // Lambda starts a bootstrap as a program
				return err
			}
		}
		return npmInstall(ctx, dir)
	}}.install(ctx)
	if err != nil {
		return "", fmt.Errorf("testserver: installing %s: %w", name, err)
	}
	return dir, nil
}

// The package managers' ordinary clients are called, with the user's own settings of mirrors and proxies.

// npmInstall installs what package-lock.json pins. No script of a package is run.
func npmInstall(ctx context.Context, dir string) error {
	return run(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
}

// installMaven copies what pom.xml names, and what that needs, into lib.
func installMaven(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("java"); err != nil {
		return err
	}
	return run(ctx, dir, "mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime")
}

// installJDK is installMaven for a program in source code.
func installJDK(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("javac"); err != nil {
		return err
	}
	return installMaven(ctx, dir)
}

// installPython makes a virtual environment with what requirements.txt pins; constraints.txt pins what that needs.
func installPython(ctx context.Context, dir string) error {
	interpreter, err := findPython(ctx)
	if err != nil {
		return err
	}
	if err := run(ctx, dir, interpreter, "-m", "venv", "venv"); err != nil {
		return err
	}
	return run(ctx, dir, python(dir), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet",
		"-r", "requirements.txt", "-c", "constraints.txt")
}

// python is the interpreter of an installation's virtual environment.
func python(dir string) string { return filepath.Join(dir, "venv", "bin", "python") }

// findPython returns an interpreter that LocalStack runs on: with an older one each of its SQS calls is an internal error.
// It also looks at the versions that pyenv has installed and not selected.
func findPython(ctx context.Context) (string, error) {
	candidates := []string{"python3.13", "python3.12", "python3"}
	if root, err := exec.CommandContext(ctx, "pyenv", "root").Output(); err == nil {
		for _, version := range []string{"3.13.*", "3.12.*"} {
			found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "versions", version, "bin", "python3"))
			if err != nil {
				return "", err
			}
			candidates = append(candidates, found...)
		}
	}
	for _, c := range candidates {
		// A command of that name may exist and fail: pyenv's does for versions that are not selected.
		if exec.CommandContext(ctx, c, "-c", "import sys, venv; sys.exit(not (3, 12) <= sys.version_info < (3, 14))").Run() == nil {
			return c, nil
		}
	}
	return "", errors.New("no Python 3.12 or 3.13 found")
}

// run runs a command in dir. Its error has the end of the command's output.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, end(out.Bytes()))
	}
	return nil
}

// Python returns the interpreter of an emulator that is written in Python, which has PyYAML. The emulator is installed: a test calls
// Shared before.
func (e *Emulator) Python() (string, error) {
	dir, err := e.installation().dir()
	return python(dir), err
}
