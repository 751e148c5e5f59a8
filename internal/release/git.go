package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/mod/semver"
)

func git(repo string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = repo
	out, err := output(cmd)
	return strings.TrimSpace(out), err
}

// lastTag returns the greatest version that the main module has a tag of, "" without any.
func lastTag(repo string) (last string, err error) {
	tags, err := git(repo, "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	for tag := range strings.FieldsSeq(tags) {
		if semver.IsValid(tag) && (last == "" || semver.Compare(tag, last) > 0) {
			last = tag
		}
	}
	return last, nil
}

func checkVersion(version, last string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("VERSION=%q is no semantic version: write it as v0.1.0", version)
	case semver.Major(version) != "v0" && semver.Major(version) != "v1":
		return fmt.Errorf("%s needs another module path, which ends in /%s", version, semver.Major(version))
	case last != "" && semver.Compare(version, last) <= 0:
		return fmt.Errorf("%s is not greater than the last tag, %s", version, last)
	}
	return nil
}

func checkRepository(repo string) error {
	var errs []error
	changed, err := git(repo, "status", "--porcelain")
	if changed != "" {
		errs = append(errs, fmt.Errorf("the tree has changes that are not committed:\n%s", changed))
	}
	branch, branchErr := git(repo, "branch", "--show-current")
	if branchErr == nil && branch != "main" {
		errs = append(errs, fmt.Errorf("releases are made on the branch main, this is %q", branch))
	}
	return errors.Join(append(errs, err, branchErr)...)
}

// cloneTag puts the tree of a tag into the folder to.
func cloneTag(to, repo, tag string) error {
	_, err := output(exec.Command("git", "clone", "--quiet", "--branch", tag, repo, to))
	return err
}
