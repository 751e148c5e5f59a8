package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// module is one of the repository's modules.
type module struct {
	dir  string // relative to the tree, with slashes; "." for the main module
	path string
}

// tag returns the name of the tag that makes version of the module available.
func (m module) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// published reports whether users require the module. Benchmarks, examples and internal tools are none of theirs.
func (m module) published() bool {
	folders := strings.Split(m.dir, "/")
	return !slices.Contains([]string{"bench", "examples"}, folders[0]) && !slices.Contains(folders, "internal")
}

// findModules returns the modules of tree, the main one first.
func findModules(tree string) ([]module, error) {
	var found []module
	err := filepath.WalkDir(tree, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || d.Name() != "go.mod":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(tree, filepath.Dir(name))
		if err != nil {
			return err
		}
		found = append(found, module{dir: filepath.ToSlash(dir), path: modfile.ModulePath(text)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b module) int { return strings.Compare(a.dir, b.dir) })
	if len(found) == 0 || found[0].dir != "." {
		return nil, fmt.Errorf("%s has no go.mod: run it in the root of the repository", tree)
	}
	for _, m := range found {
		if want := path.Join(found[0].path, m.dir); m.path != want {
			return nil, fmt.Errorf("%s/go.mod names its module %q, want %q: its tag would not be found", m.dir, m.path, want)
		}
	}
	return found, nil
}

func publishedOf(modules []module) (published []module) {
	for _, m := range modules {
		if m.published() {
			published = append(published, m)
		}
	}
	return published
}

// setRequires has each module of tree require our other modules at version. A consumer's go command ignores the replace
// directives, with which the repository uses its own tree whatever the version says.
func setRequires(tree string, modules []module, version string) error {
	for _, m := range modules {
		err := editModule(filepath.Join(tree, m.dir), func(file *modfile.File) error {
			for _, other := range modules {
				requires := func(r *modfile.Require) bool { return r.Mod.Path == other.path }
				if !slices.ContainsFunc(file.Require, requires) {
					continue
				}
				if err := file.AddRequire(other.path, version); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceModules has the module in the folder dir use the given ones from tree.
func replaceModules(dir, tree string, modules []module) error {
	return editModule(dir, func(file *modfile.File) error {
		for _, m := range modules {
			if m.path == file.Module.Mod.Path {
				continue
			}
			if err := file.AddReplace(m.path, "", filepath.Join(tree, m.dir), ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func editModule(dir string, edit func(*modfile.File) error) error {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	if err := edit(file); err != nil {
		return err
	}
	if text, err = file.Format(); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
