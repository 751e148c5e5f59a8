package release

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// copyTree copies what git has or would add of the repository at from, with its changes, to the folder to. A tree without a
// repository is copied as it is, but for build output.
func copyTree(to, from string) error {
	list := gitFiles
	if _, err := os.Stat(filepath.Join(from, ".git")); errors.Is(err, fs.ErrNotExist) {
		list = allFiles
	}
	names, err := list(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(to, name), filepath.Join(from, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func gitFiles(dir string) ([]string, error) {
	// The tree may belong to another user, as in a container.
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	list, err := output(cmd)
	return strings.Split(strings.TrimRight(list, "\x00"), "\x00"), err
}

func allFiles(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"bin", "dist", ".aws-sam", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		name, err = filepath.Rel(dir, name)
		names = append(names, name)
		return err
	})
	return names, err
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}
