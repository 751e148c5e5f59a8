package realserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// policyFile is what Debian's packages ask before they start their service; 101 forbids it.
const (
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\nexit 101\n"
)

// Install installs Debian's packages of the kinds whose programs are missing, without starting their services. It needs
// root and apt-get. Versions are those of the Debian release: its archive keeps only the newest, so none can be pinned.
func Install(ctx context.Context, kinds ...*Kind) error {
	unlock, err := lock(ctx, filepath.Join(os.TempDir(), "sqsonce-realserver.lock"))
	if err != nil {
		return fmt.Errorf("realserver: waiting for another installation: %w", err)
	}
	defer unlock()
	var packages []string
	for _, k := range kinds {
		if !k.Installed() {
			packages = append(packages, k.packages...)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	wanted := strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("realserver: installing %s needs root and apt-get; or install what has the programs", wanted)
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	allow, err := forbidServices()
	if err != nil {
		return fmt.Errorf("realserver: keeping services from starting: %w", err)
	}
	if err := errors.Join(aptGet(ctx, slices.Concat([]string{"install", "-y", "--no-install-recommends"}, packages)...), allow()); err != nil {
		return err
	}
	for _, k := range kinds {
		if p := k.missing(); p != "" {
			return fmt.Errorf("realserver: %s brought no program %s", wanted, p)
		}
	}
	return nil
}

// forbidServices keeps packages from starting services until allow is called. A policy that is there is left alone: in
// most containers it forbids them.
func forbidServices() (allow func() error, err error) {
	f, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(policy)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(policyFile))
	}
	return func() error { return os.Remove(policyFile) }, nil
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// Killed in the middle, dpkg would leave half a package.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("realserver: apt-get %s: %w\n%s", args[0], err, last(out))
	}
	return nil
}

// lock takes the lock file, waiting for other processes and goroutines until ctx ends. The system frees it when the
// process ends, however it ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
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
			case <-time.After(200 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		return nil, errors.Join(err, f.Close())
	}
}
