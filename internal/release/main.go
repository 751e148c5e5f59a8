// Command release checks that the repository can be released as a version, and prepares its modules for it. It commits, tags
// and pushes nothing. If a check fails, no file is changed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	version := flag.String("version", "", "`version` to release, such as v0.1.0")
	licences := flag.Bool("licences", false, "write "+licencesFile+" and do nothing else")
	flag.Parse()
	var err error
	if *licences {
		err = writeLicences(".")
	} else {
		err = run(os.Stdout, ".", *version, time.Now())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is the version that is being prepared.
type release struct {
	out           io.Writer
	repo, version string
	last          string // the last tag, or ""
	scratch       string
	tree          string   // a copy of the repository, prepared
	modules       []module // of the tree
	changelog     string   // with a section for the version
	lastTree      string   // the last tag's
}

// run checks the repository, and prepares its files only if no check fails.
func run(out io.Writer, repo, version string, day time.Time) error {
	last, err := lastTag(repo)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := &release{
		out: out, repo: repo, version: version, last: last,
		scratch: scratch, tree: filepath.Join(scratch, "tree"), lastTree: filepath.Join(scratch, "last"),
	}
	err = errors.Join(checkVersion(version, last), checkRepository(repo))
	if err == nil {
		err = r.prepare(day)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := r.writeBack(); err != nil {
		return err
	}
	r.printTags()
	return nil
}

// prepare makes the tree.
func (r *release) prepare(day time.Time) (err error) {
	if err := copyTree(r.tree, r.repo); err != nil {
		return err
	}
	if r.modules, err = findModules(r.tree); err != nil {
		return err
	}
	if err := setRequires(r.tree, r.modules, r.version); err != nil {
		return err
	}
	name := filepath.Join(r.tree, changelogFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if r.changelog, err = releaseChangelog(string(text), r.version, day); err != nil {
		return err
	}
	if r.last != "" {
		if err := cloneTag(r.lastTree, r.repo, r.last); err != nil {
			return err
		}
	}
	return os.WriteFile(name, []byte(r.changelog), 0o644)
}

// check runs every check on the tree, also after one has failed.
func (r *release) check() error {
	checks := []struct {
		name     string
		needsTag bool
		run      func() error
	}{
		{"each module builds alone, with all lines of go.sum", false, r.checkModules},
		{"golden data is read", false, r.checkGolden},
		{"the API is compatible, or its changes are announced", true, r.checkAPI},
		{"the last tag's modules build with the new main module", true, r.checkOldModules},
	}
	var errs []error
	for _, c := range checks {
		if c.needsTag && r.last == "" {
			fmt.Fprintf(r.out, "-- %s: there is no tag yet\n", c.name)
			continue
		}
		if err := c.run(); err != nil {
			fmt.Fprintln(r.out, "FAILED", c.name)
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		fmt.Fprintln(r.out, "ok", c.name)
	}
	return errors.Join(errs...)
}

func (r *release) checkModules() error {
	var errs []error
	for _, m := range r.modules {
		for _, args := range [][]string{{"mod", "tidy", "-diff"}, {"build", "./..."}} {
			if _, err := output(goCommand(filepath.Join(r.tree, m.dir), args...)); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m.dir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// writeBack copies the prepared files into the repository.
func (r *release) writeBack() error {
	names := []string{changelogFile}
	for _, m := range r.modules {
		names = append(names, filepath.Join(m.dir, "go.mod"))
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(r.repo, name), filepath.Join(r.tree, name)); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) printTags() {
	fmt.Fprintf(r.out, "\nThe files are prepared. What remains, after a look at git diff:\n\n  git commit -am 'release %s'\n", r.version)
	push := "  git push origin main"
	for _, m := range publishedOf(r.modules) {
		fmt.Fprintf(r.out, "  git tag %s\n", m.tag(r.version))
		push += " " + m.tag(r.version)
	}
	fmt.Fprintln(r.out, push)
}
