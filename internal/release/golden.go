package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// checkGolden runs the tests that read the records, attributes and keys of the versions before, and refuses changes of files
// that the last tag has: they are what users' tables and queues hold.
func (r *release) checkGolden() error {
	err := filepath.WalkDir(r.tree, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.HasSuffix(filepath.ToSlash(name), "/testdata/golden") {
			return err
		}
		_, err = output(goCommand(filepath.Dir(filepath.Dir(name)), "test", "-count=1", "-run", "^TestGolden", "."))
		return err
	})
	if err != nil || r.last == "" {
		return err
	}
	changed, err := git(r.repo, "diff", "--name-only", "--no-renames", "--diff-filter=a", r.last, "--", ":(glob)**/testdata/golden/**")
	if err == nil && changed != "" {
		err = fmt.Errorf("golden files that %s has were changed; restore them, and write new ones under the new version:\n%s", r.last, changed)
	}
	return err
}
