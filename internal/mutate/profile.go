package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// profiledDir names the environment variable with the package's folder. Where it is set, this program is what `go test -exec`
// starts in place of the test.
const profiledDir = "SQSONCE_MUTATE"

const module = "github.com/sqsonce/sqsonce/"

// runTest runs a test. Where that writes a profile, it takes at least so long, and every line of its package counts as covered:
// gremlins does not run mutants of other lines, and Go's profiles contain neither constants nor the conditions of case clauses.
func runTest(pkg string, least time.Duration, command []string) int {
	begun := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, arg := range command {
		if profile, ok := strings.CutPrefix(arg, "-test.coverprofile="); ok {
			time.Sleep(time.Until(begun.Add(least))) // only the run that gremlins measures has a profile
			if err := coverAll(profile, pkg); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return 0
}

func coverAll(profile, pkg string) error {
	names, err := filepath.Glob("*.go") // go test starts a test in its package's folder
	if err != nil {
		return err
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			text = fmt.Appendf(text, "%s:1.1,99999.1 1 1\n", module+filepath.ToSlash(filepath.Join(pkg, name)))
		}
	}
	return os.WriteFile(profile, text, 0o600)
}
