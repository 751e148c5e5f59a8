package realserver

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Debian keeps PostgreSQL's programs apart from the PATH, so that several versions can be installed.
var folders = []string{"/usr/lib/postgresql/*/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// find returns the path of a program: in the PATH, or where packages put it. Of several versions it takes the newest.
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
			if _, err := exec.LookPath(path); err == nil { // it may be there and not be for us to run
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("realserver: no program %s found", program)
}

// named is the server's program that the environment names, or "".
func (k *Kind) named() string {
	if k.variable == "" {
		return ""
	}
	return os.Getenv(k.variable)
}

// missing returns a program of the kind that is not here, or "".
func (k *Kind) missing() string {
	programs := k.programs
	if path := k.named(); path != "" {
		// A relative path would be another in each folder that a program of ours runs in.
		if _, err := exec.LookPath(path); err != nil || !filepath.IsAbs(path) {
			return path
		}
		programs = programs[min(1, len(programs)):]
	} else if len(programs) == 0 {
		return "that " + k.variable + " names"
	}
	for _, p := range programs {
		if _, err := find(p); err != nil {
			return p
		}
	}
	return ""
}

// Installed reports whether servers of the kind can be started.
func (k *Kind) Installed() bool { return k.missing() == "" }

// program is the path of the server, which is installed.
func (k *Kind) program() string {
	if path := k.named(); path != "" {
		return path
	}
	path, err := find(k.programs[0])
	if err != nil {
		return k.programs[0] // removed since: starting it says so
	}
	return path
}
