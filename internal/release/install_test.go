package release

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/sqsonce/sqsonce/internal/must"
)

const (
	repository  = "../.."
	testVersion = "v0.99.0" // no tag has it
)

// module is a published module.
type module struct {
	dir, path string // the folder in the tree, with slashes: "." of the main module
}

// A program outside of the repository gets a published module from a proxy, without the others, and builds all of its packages.
// Another one gets them all, and runs the README's code.
func TestInstall(t *testing.T) {
	t.Parallel()
	tree := preparedTree(t)
	all := newConsumer(t, tree, testVersion)
	for _, m := range published(t, tree) {
		// A program that requires the main module too would build, whatever version of it m requires.
		c := all.another(t)
		for _, c := range []consumer{c, all} {
			c.run(t, "get", m.path+"@"+testVersion)
			c.importAll(t, m)
		}
		c.run(t, "build", "./...")
	}
	if all.addReadme(t, tree) == 0 {
		t.Error("the README has no Go code")
	}
	all.run(t, "get", "github.com/aws/aws-sdk-go-v2/config@v1.33.13") // the program's own, the version of docs/start.md
	all.run(t, "mod", "tidy")
	all.run(t, "build", "./...")
	all.run(t, "test", "./readme/...")
}

var latest = regexp.MustCompile(`go (?:install|run) (github\.com/sqsonce/sqsonce\S*)@latest`)

// The operators' command, and each program that a page tells to install or run, is installed by its version, as a user does who has
// neither the repository nor a module.
func TestInstallPrograms(t *testing.T) {
	t.Parallel()
	tree := preparedTree(t)
	c := newConsumer(t, tree, testVersion)
	c.dir = t.TempDir()
	programs := map[string]bool{"github.com/sqsonce/sqsonce/cmd/sqsonce": true}
	pages := must.Get(filepath.Glob(filepath.Join(tree, "docs/*.md")))(t)
	for _, page := range append(pages, filepath.Join(tree, "README.md")) {
		text := must.Get(os.ReadFile(page))(t)
		for _, m := range latest.FindAllStringSubmatch(string(text), -1) {
			programs[m[1]] = true
		}
	}
	if len(programs) < 2 {
		t.Error("no page tells to run localaws: were the commands found?")
	}
	for program := range programs {
		c.run(t, "install", program+"@"+testVersion)
		name := filepath.Join(c.bin, filepath.Base(program))
		if out, err := output(exec.Command(name, "-h")); err != nil {
			t.Errorf("%s: %v", out, err)
		}
	}
	if out, err := output(exec.Command(filepath.Join(c.bin, "sqsonce"), "version")); err != nil || !strings.Contains(out, testVersion) {
		t.Errorf("sqsonce version: %s, %v, want %s", out, err, testVersion)
	}
}

// The test sees a module that requires a version of the main module which lacks what it uses.
func TestInstallSeesBrokenRequires(t *testing.T) {
	t.Parallel()
	const old = "v0.98.0"
	tree := copiedTree(t)
	prepare(t, tree, old)
	must.Do(t, os.RemoveAll(filepath.Join(tree, "internal/host")))
	c := newConsumer(t, tree, testVersion)
	modules := published(t, tree)
	must.Do(t, writeModule(c.proxy, tree, modules[0], old))
	sqlstore := modules[0].path + "/dedup/sqlstore"
	c.write(t, "main.go", fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", sqlstore))
	_, err := c.try("get", sqlstore+"@"+testVersion)
	if err == nil {
		_, err = c.try("build", ".")
	}
	if err == nil || !strings.Contains(err.Error(), "internal/host") {
		t.Errorf("a program that requires sqlstore: %v, want an error that names internal/host", err)
	}
}

func copiedTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	must.Do(t, copyTree(tree, repository))
	return tree
}

// preparedTree returns a copy of the repository as its release would be.
func preparedTree(t *testing.T) string {
	t.Helper()
	tree := copiedTree(t)
	prepare(t, tree, testVersion)
	return tree
}

func prepare(t *testing.T, tree, version string) {
	t.Helper()
	must.Get(script(tree, "-prepare", version))(t)
}

// script runs release.sh in a tree.
func script(tree string, args ...string) (string, error) {
	name, err := filepath.Abs("release.sh")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = tree
	return output(cmd)
}

func published(t *testing.T, tree string) (modules []module) {
	t.Helper()
	list := must.Get(script(tree, "-published"))(t)
	for dir := range strings.FieldsSeq(list) {
		modules = append(modules, module{dir: dir, path: path.Join("github.com/sqsonce/sqsonce", dir)})
	}
	return modules
}

// consumer is a module outside of the repository, with a module proxy and a module cache of its own.
type consumer struct {
	dir, proxy, bin string
	env             []string
}

// newConsumer returns a consumer whose proxy has the published modules of tree as version.
func newConsumer(t *testing.T, tree, version string) consumer {
	t.Helper()
	c := consumer{proxy: t.TempDir(), bin: t.TempDir()}
	for _, m := range published(t, tree) {
		must.Do(t, writeModule(c.proxy, tree, m, version))
	}
	env := must.Get(output(exec.Command("go", "env", "GOMODCACHE", "GOPROXY")))(t)
	cache, others, _ := strings.Cut(strings.TrimSpace(env), "\n")
	c.env = append(os.Environ(),
		"GOWORK=off",
		"GOMODCACHE="+t.TempDir(),
		// What others wrote comes from the user's module cache where it is there already.
		"GOPROXY=file://"+filepath.ToSlash(c.proxy)+",file://"+filepath.ToSlash(filepath.Join(cache, "cache/download"))+","+others,
		"GOSUMDB=off",
		"GOBIN="+c.bin,
		// The build cache knows packages by module and version, not by the folder of this module cache.
		"GOFLAGS=-mod=mod -modcacherw -trimpath",
	)
	return c.another(t)
}

// another returns an empty module with the same proxy and cache.
func (c consumer) another(t *testing.T) consumer {
	t.Helper()
	c.dir = t.TempDir()
	c.run(t, "mod", "init", "example.com/consumer")
	return c
}

// writeModule adds version of m to the module proxy in the folder proxy.
func writeModule(proxy, tree string, m module, version string) error {
	escaped, err := modversion.EscapePath(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, escaped, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(tree, m.dir, "go.mod"))
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := zip.CreateFromDir(file, modversion.Version{Path: m.path, Version: version}, filepath.Join(tree, m.dir)); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339)),
		version + ".mod":  string(goMod),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return file.Close()
}

// run runs the go command in the consumer.
func (c consumer) run(t *testing.T, args ...string) string {
	t.Helper()
	return must.Get(c.try(args...))(t)
}

func (c consumer) try(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	return output(cmd)
}

// importAll adds a package that imports every package of m that another module can import.
func (c consumer) importAll(t *testing.T, m module) {
	t.Helper()
	list := c.run(t, "list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`, m.path+"/...")
	program := "package all\n"
	for pkg := range strings.FieldsSeq(list) {
		if !strings.Contains(pkg, "/internal/") {
			program += fmt.Sprintf("\nimport _ %q\n", pkg)
		}
	}
	c.write(t, filepath.Join(m.path, "all.go"), program)
}

// addReadme copies the example files that have the README's Go code, and returns how many.
func (c consumer) addReadme(t *testing.T, tree string) (added int) {
	t.Helper()
	readme := must.Get(os.ReadFile(filepath.Join(tree, "README.md")))(t)
	examples := readExamples(t, tree)
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		// The longest line tells which example it is: internal/site's TestCodeIsFromExamples compares the others.
		lines := strings.Split(block[1], "\n")
		longest := oneSpaced(slices.MaxFunc(lines, func(a, b string) int { return len(a) - len(b) }))
		found := false
		for name, text := range examples {
			if !strings.Contains(oneSpaced(text), longest) {
				continue
			}
			found = true
			c.write(t, filepath.Join("readme", name), text)
			for _, other := range must.Get(filepath.Glob(filepath.Join(tree, path.Dir(name), "example_*_test.go")))(t) { // functions that it uses
				c.write(t, filepath.Join("readme", path.Dir(name), filepath.Base(other)), string(must.Get(os.ReadFile(other))(t)))
			}
		}
		if !found {
			t.Errorf("the README's line is in no example of a published module:\n%s", longest)
		}
		added++
	}
	return added
}

func readExamples(t *testing.T, tree string) map[string]string {
	t.Helper()
	examples := make(map[string]string)
	for _, m := range published(t, tree) {
		for _, pattern := range []string{"example_test.go", "*/example_test.go", "*/*/example_test.go"} {
			for _, name := range must.Get(filepath.Glob(filepath.Join(tree, m.dir, pattern)))(t) {
				text := must.Get(os.ReadFile(name))(t)
				examples[strings.TrimPrefix(name, tree)] = string(text)
			}
		}
	}
	examples["/quickstart/main.go"] = string(must.Get(os.ReadFile(filepath.Join(tree, "examples/quickstart/main.go")))(t))
	return examples
}

func oneSpaced(text string) string { return strings.Join(strings.Fields(text), " ") }

func (c consumer) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(c.dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(t, os.WriteFile(name, []byte(text), 0o644))
}
