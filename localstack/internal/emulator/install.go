package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The package managers' ordinary clients are used, with the user's own settings: mirrors and proxies are theirs to set.

// installPython makes a virtual environment with what requirements.txt pins; constraints.txt pins everything below it.
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

// findPython returns an interpreter that LocalStack runs on: with an older one each of its SQS calls is an internal
// error. Versions that pyenv has, and does not have in use, count.
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
		// A command of that name may exist and refuse: pyenv's does for versions that are not in use.
		if exec.CommandContext(ctx, c, "-c", "import sys, venv; sys.exit(not (3, 12) <= sys.version_info < (3, 14))").Run() == nil {
			return c, nil
		}
	}
	return "", errors.New("no Python 3.12 or 3.13 found")
}

// installMaven fetches what pom.xml names, and what that needs, into lib.
func installMaven(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("java"); err != nil {
		return err
	}
	return run(ctx, dir, "mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime")
}

// installNode installs what package-lock.json pins. No package's own scripts are run.
func installNode(ctx context.Context, dir string) error {
	return run(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
}

// run runs a command in dir. Its error carries the end of what the command said.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, tail(out.Bytes()))
	}
	return nil
}

// tail returns the end of a log: what went wrong is there.
func tail(log []byte) []byte {
	const most = 4 << 10
	return log[max(0, len(log)-most):]
}

// environment is what an emulator gets of ours: no credentials, no settings, and a home folder of its own.
func environment(scratch string) []string {
	env := []string{"HOME=" + scratch, "TMPDIR=" + scratch}
	for _, name := range []string{"PATH", "JAVA_HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
