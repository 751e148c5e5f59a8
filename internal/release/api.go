package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

const apidiff = "golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e"

// apiChange is an incompatible change since the last tag.
type apiChange struct {
	pkg        string // the package's name; "" for the main module's root
	identifier string // without package and receiver
	text       string
}

// checkAPI refuses incompatible changes that the version number or the changelog does not tell users of.
func (r *release) checkAPI() error {
	changes, err := r.apiChanges()
	if err != nil || len(changes) == 0 {
		return err
	}
	var hidden []string
	for _, c := range changes {
		fmt.Fprintln(r.out, "   incompatible:", c.text)
		if !c.announced(section(r.changelog, r.version)) {
			hidden = append(hidden, c.text)
		}
	}
	switch {
	case semver.Major(r.last) != "v0":
		return fmt.Errorf("%d incompatible changes since %s, which promised none: a new major version needs another module path", len(changes), r.last)
	case semver.MajorMinor(r.last) == semver.MajorMinor(r.version):
		return fmt.Errorf("%d incompatible changes since %s: raise the minor version, not the patch version", len(changes), r.last)
	case len(hidden) > 0:
		return fmt.Errorf("no line under Changed or Removed in %s names these changes (`identifier`, and the package):\n%s", changelogFile, strings.Join(hidden, "\n"))
	}
	return nil
}

// apiChanges compares the published modules of the last tag with those of the tree.
func (r *release) apiChanges() (changes []apiChange, err error) {
	before, err := findModules(r.lastTree)
	if err != nil {
		return nil, err
	}
	for i, m := range publishedOf(before) {
		name := filepath.Join(r.scratch, fmt.Sprintf("api%d", i))
		if _, err := output(goCommand(filepath.Join(r.lastTree, m.dir), "run", apidiff, "-m", "-w", name+".old", m.path)); err != nil {
			return nil, err
		}
		// Fails where the module is gone: its folder stays, empty, with a deprecation in its go.mod.
		if _, err := output(goCommand(filepath.Join(r.tree, m.dir), "run", apidiff, "-m", "-w", name+".new", m.path)); err != nil {
			return nil, err
		}
		report, err := output(goCommand(r.tree, "run", apidiff, "-m", "-incompatible", name+".old", name+".new"))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(report) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
				changes = append(changes, newChange(m, text))
			}
		}
	}
	return changes, nil
}

// newChange reads a line of apidiff: "./fifo.(*Publisher).Close: removed", "Order: removed" or "package PATH: removed".
func newChange(m module, text string) apiChange {
	c := apiChange{text: m.path + ": " + text}
	if m.dir != "." {
		c.pkg = path.Base(m.path)
	}
	what, _, _ := strings.Cut(text, ": ")
	if gone, ok := strings.CutPrefix(what, "package "); ok {
		c.identifier = path.Base(gone)
		c.pkg = ""
		return c
	}
	if in, ok := strings.CutPrefix(what, "./"); ok {
		dir := path.Dir(in)
		first, rest, _ := strings.Cut(path.Base(in), ".")
		c.pkg = path.Base(path.Join(dir, first))
		what = rest
	}
	c.identifier = what[strings.LastIndexByte(what, '.')+1:]
	return c
}

// checkOldModules builds the last tag's modules with the new main module: a user who updates only that one gets the two
// together. They use its internal packages too.
func (r *release) checkOldModules() error {
	before, err := findModules(r.lastTree)
	if err != nil {
		return err
	}
	for _, m := range publishedOf(before) {
		if m.dir == "." {
			continue
		}
		dir := filepath.Join(r.lastTree, m.dir)
		if err := replaceModules(dir, r.tree, r.modules); err != nil {
			return err
		}
		if _, err := output(goCommand(dir, "build", "-mod=mod", "./...")); err != nil {
			return fmt.Errorf("%s of %s does not build with the new main module; give back what it uses: %w", m.dir, r.last, err)
		}
	}
	return nil
}
