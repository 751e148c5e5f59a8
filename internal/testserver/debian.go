package testserver

import (
	"cmp"
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
)

// folders are where packages put programs that are not in the PATH: Debian can have several versions of PostgreSQL.
var folders = []string{"/usr/lib/postgresql/*/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// find returns the path of a program: in the PATH, or in one of the folders, in the newest version.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, program))
		if err != nil {
			return "", err
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
		for _, path := range found {
			if _, err := exec.LookPath(path); err == nil { // it is executable
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("testserver: no program %s found", program)
}

// named returns the server's program that the environment names, or "".
func (d *Database) named() string {
	if d.variable == "" {
		return ""
	}
	return os.Getenv(d.variable)
}

// missing returns a program of the database that is not found, or "".
func (d *Database) missing() string {
	programs := d.programs
	if path := d.named(); path != "" {
		// A relative path would name another file in each package's tests.
		if _, err := exec.LookPath(path); err != nil || !filepath.IsAbs(path) {
			return path
		}
		programs = programs[min(1, len(programs)):]
	} else if len(programs) == 0 {
		return "that " + d.variable + " names"
	}
	for _, p := range programs {
		if _, err := find(p); err != nil {
			return p
		}
	}
	return ""
}

// Installed reports whether servers of the database can be started.
func (d *Database) Installed() bool { return d.missing() == "" }

// program returns the path of the server, which is installed.
func (d *Database) program() string {
	if path := d.named(); path != "" {
		return path
	}
	path, err := find(d.programs[0])
	if err != nil {
		return d.programs[0] // removed since then: starting it fails
	}
	return path
}

// policyFile is the script that Debian's packages run before they start their service; its status 101 forbids that.
const (
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\nexit 101\n"
)

// Install installs the Debian packages of those databases whose programs are missing, without starting their services. It
// needs root and apt-get. Versions are those of the Debian release: its archive has only the newest, so none can be pinned.
func Install(ctx context.Context, databases ...*Database) error {
	return installMissing(ctx, func() (packages []string, program string) {
		for _, d := range databases {
			if p := d.missing(); p != "" {
				packages, program = append(packages, d.packages...), p
			}
		}
		return packages, program
	})
}

// installMissing installs the packages of what missing names, with one of the programs that are not found; "": all are.
func installMissing(ctx context.Context, missing func() (packages []string, program string)) error {
	unlock, err := lock(ctx, filepath.Join(os.TempDir(), "sqsonce-testserver.lock"))
	if err != nil {
		return fmt.Errorf("testserver: waiting for another installation: %w", err)
	}
	defer unlock()
	packages, program := missing()
	if program == "" {
		return nil
	}
	wanted := strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("testserver: installing %s needs root and apt-get; install the programs by other means", wanted)
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	allow, err := forbidServices()
	if err != nil {
		return fmt.Errorf("testserver: forbidding services to start: %w", err)
	}
	if err := errors.Join(aptGet(ctx, slices.Concat([]string{"install", "-y", "--no-install-recommends"}, packages)...), allow()); err != nil {
		return err
	}
	if _, p := missing(); p != "" {
		return fmt.Errorf("testserver: %s installed no program %s", wanted, p)
	}
	return nil
}

// forbidServices forbids packages to start services until allow is called. An existing policy stays as it is: in most
// containers it forbids them.
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
	// SIGKILL would leave a package half installed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("testserver: apt-get %s: %w\n%s", args[0], err, end(out))
	}
	return nil
}
