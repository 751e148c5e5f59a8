// Command mutate runs gremlins over packages of the main module, each with its own tests, and compares the mutants that survive
// with those that survivors.txt lists as equivalent. It exits with 1 if a survivor is not listed, or if a listed one is killed
// or its line is gone. A mutant that does not compile counts as killed, as go test's exit code says no more.
//
// Everything happens in a copy of the working tree in the temporary folder, which is removed at the end, also at an interrupt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// slow are tests that take most of their package's time and find nothing that the others do not: processes on real servers,
// real connections, searches and soaks.
var slow = map[string]string{
	"fifo":              "^Test(StormOverTCP|TCPConnectionsThatDiedInAFreeze)$",
	"dedup/dynamostore": "^TestSchedules",
	"sqsworker": "^Test(Soak|Disturbances|Connections|Killed.*|Process.*|.*Process|HeldCopiesAreLimited|RejectedWhileSendsFail|" +
		"SlowDeletesDoNotBoundThroughput|OrderUnderFailures)$|^TestOutageIsNoStorm$/^(throttled|breaks|no_answer|hangs|90)",
}

// A mutant is stopped after timeoutCoefficient times the duration of the package's tests, which is leastDuration or more: after
// 40 seconds or more, so that a machine that others use too stops none that would only compile for long.
const (
	timeoutCoefficient = "5"
	leastDuration      = 8 * time.Second
)

func main() {
	if pkg := os.Getenv(profiledDir); pkg != "" {
		os.Exit(runTest(pkg, os.Getenv(quickTestsFile), leastDuration, os.Args[1:]))
	}
	gremlins := flag.String("gremlins", "gremlins", "the `path` of gremlins")
	only := flag.String("file", "", "mutate these `files` of the package only, separated by commas")
	flag.Parse()
	files := strings.FieldsFunc(*only, func(c rune) bool { return c == ',' })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed := 0
	for _, pkg := range flag.Args() {
		ok, err := mutate(ctx, *gremlins, path.Clean(pkg), files)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate %s: %v\n", pkg, err)
		}
		if !ok || err != nil {
			failed++
		}
	}
	stop()
	if failed > 0 {
		os.Exit(1)
	}
}

// mutate reports whether the survivors of a package are the listed ones.
func mutate(ctx context.Context, gremlins, pkg string, files []string) (ok bool, err error) {
	list, err := os.ReadFile("internal/mutate/survivors.txt")
	if err != nil {
		return false, err
	}
	listed, err := parseList(string(list))
	if err != nil {
		return false, err
	}
	temp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tree := filepath.Join(temp, "tree")
	if err := copyTree(ctx, tree); err != nil {
		return false, err
	}
	if err := ignoreOthers(tree, pkg); err != nil {
		return false, err
	}
	mutants, err := run(ctx, gremlins, temp, pkg, files)
	if err != nil {
		return false, err
	}
	result := compare(mutants, listed, func(f string) bool {
		return path.Dir(f) == pkg && (len(files) == 0 || slices.Contains(files, path.Base(f)))
	})
	fmt.Printf("%s: %s", pkg, result)
	return result.ok(), nil
}

// copyTree copies the files that git knows or would add: neither build output nor what tests left behind.
func copyTree(ctx context.Context, to string) error {
	out, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return err
		}
		copied := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(copied, data, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// ignoreOthers makes pkg the only package that the patterns of gremlins, "./..." and "./pkg/...", match. Tests that list the
// packages of the module see no more either.
func ignoreOthers(tree, pkg string) error {
	var ignored strings.Builder
	err := filepath.WalkDir(tree, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(tree, name)
		if err != nil || rel == pkg || strings.HasPrefix(pkg, rel+"/") || rel == "." {
			return err
		}
		fmt.Fprintf(&ignored, "ignore ./%s\n", filepath.ToSlash(rel))
		return filepath.SkipDir
	})
	if err != nil {
		return err
	}
	mod := filepath.Join(tree, "go.mod")
	text, err := os.ReadFile(mod)
	if err != nil {
		return err
	}
	return os.WriteFile(mod, append(text, "\n"+ignored.String()...), 0o600)
}

func run(ctx context.Context, gremlins, temp, pkg string, files []string) ([]mutant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Without -count gremlins would measure how long it takes to read a result from Go's cache.
	flags := []string{"-count=1", "-vet=off", "-ldflags=-w", "-exec=" + self}
	if skip := slow[pkg]; skip != "" {
		flags = append(flags, "-skip="+skip)
	}
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS="+strings.Join(flags, " "), "TMPDIR="+temp, profiledDir+"="+pkg,
		quickTestsFile+"="+filepath.Join(temp, "quick"),
		// Each mutant meets the same random cases: none is killed by luck, or by a case that another one left.
		"EMULATORS=off", "RAPID_SEED=1", "RAPID_NOFAILFILE=1", "RAPID_SHRINKTIME=1ms")
	command := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Join(temp, "tree"), env, os.Stdout, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		return ctx.Err() // gremlins exits with 0 after an interrupt
	}
	// gremlins multiplies the duration of its first run: that must not include the compilation of all dependencies.
	if err := command("go", "test", "-cover", "-run", "^$", "./"+pkg); err != nil {
		return nil, err
	}
	report := filepath.Join(temp, "report.json")
	args := []string{"unleash", "--workers", "1", "--timeout-coefficient", timeoutCoefficient, "-S", "lt", "-o", report}
	excluded, err := others(filepath.Join(temp, "tree", pkg), files)
	if err != nil {
		return nil, err
	}
	if err := command(gremlins, slices.Concat(args, excluded, []string{"./" + pkg})...); err != nil {
		return nil, err
	}
	return readReport(report, filepath.Join(temp, "tree"), pkg)
}

// others are the flags that exclude the packages below dir, and its files other than files.
func others(dir string, files []string) (flags []string, err error) {
	flags = []string{"-E", "/"}
	if len(files) == 0 {
		return flags, nil
	}
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			return nil, err
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if base := filepath.Base(name); !slices.Contains(files, base) && !strings.HasSuffix(base, "_test.go") {
			flags = append(flags, "-E", "^"+base+"$")
		}
	}
	return flags, err
}
