package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// profiledDir names the environment variable with the package's folder. Where it is set, this program is what `go test -exec`
// starts in place of the test.
const profiledDir = "SQSONCE_MUTATE"

// quickTestsFile names the one with the path of the file in which the run with a profile leaves the quick tests.
const quickTestsFile = "SQSONCE_MUTATE_QUICK"

const module = "github.com/sqsonce/sqsonce/"

// quick is the most that a test may take to be one of those that a mutant meets first.
const quick = 50 * time.Millisecond

// runTest runs a test: with a profile the unchanged one, else that of a mutant.
func runTest(pkg, quickFile string, least time.Duration, command []string) int {
	for _, arg := range command {
		if profile, ok := strings.CutPrefix(arg, "-test.coverprofile="); ok {
			return runProfiled(pkg, profile, quickFile, least, command)
		}
	}
	return runMutant(quickFile, command)
}

// runProfiled takes at least so long, and every line of the package counts as covered: gremlins does not run mutants of other
// lines, and Go's profiles contain neither constants nor the conditions of case clauses. It finds out which tests are quick.
func runProfiled(pkg, profile, quickFile string, least time.Duration, command []string) int {
	begun := time.Now()
	var out bytes.Buffer
	if code := runCommand(&out, append(slices.Clone(command), "-test.v")); code != 0 {
		os.Stdout.Write(out.Bytes())
		return code
	}
	time.Sleep(time.Until(begun.Add(least)))
	err := errors.Join(coverAll(profile, pkg), os.WriteFile(quickFile, []byte(quickTests(out.String())), 0o600))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runMutant runs the quick tests first: most mutants fail there, in a tenth of the time of all tests. Without a run with a
// profile before it, it is not known which these are.
func runMutant(quickFile string, command []string) int {
	tests, err := os.ReadFile(quickFile)
	if err != nil {
		return runCommand(os.Stdout, command)
	}
	if code := runCommand(os.Stdout, append(slices.Clone(command), "-test.run="+string(tests))); code != 0 {
		return code
	}
	return runCommand(os.Stdout, skipping(command, string(tests)))
}

// runCommand runs a command and returns its exit code.
func runCommand(out io.Writer, command []string) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\d+\.\d+)s\)$`)

// quickTests returns the expression that matches the quick tests of a verbose run.
func quickTests(output string) string {
	var names []string
	for _, m := range passed.FindAllStringSubmatch(output, -1) {
		if d, err := time.ParseDuration(m[2] + "s"); err == nil && d <= quick {
			names = append(names, m[1])
		}
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// skipping returns the command with the tests that an expression matches left out too.
func skipping(command []string, tests string) []string {
	command = slices.Clone(command)
	for i, arg := range command {
		if skip, ok := strings.CutPrefix(arg, "-test.skip="); ok {
			command[i] = "-test.skip=" + skip + "|" + tests
			return command
		}
	}
	return append(command, "-test.skip="+tests)
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
