//go:build unix

package release

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/sqsonce/sqsonce/internal/must"
)

const repository = "../.."

// newVersion returns a version that nothing has: modules of it are in no cache.
func newVersion() string { return fmt.Sprintf("v0.99.%d", time.Now().UnixNano()) }

// module is a published module.
type module struct {
	dir, path string // the folder in the tree, with slashes: "." of the main module
}

// What a release has is used outside of the repository, by its version. One part comes after the other: each compiles, and the next one
// finds it in Go's cache.
func TestInstall(t *testing.T) {
	t.Parallel()
	tree, version := copiedTree(t), newVersion()
	prepare(t, tree, version)
	c := newConsumer(t, tree, version)
	t.Run("modules", func(t *testing.T) { testModules(t, c, tree, version) })
	t.Run("programs", func(t *testing.T) { testPrograms(t, c, tree, version) })
	t.Run("start", func(t *testing.T) { testStartModule(t, c) })
}

// A program gets a published module from a proxy, without the others, and builds all of its packages. Another one gets them all, and
// runs the README's code.
func testModules(t *testing.T, all consumer, tree, version string) {
	for _, m := range published(t, tree) {
		// A program that requires the main module too would build, whatever version of it m requires.
		c := all.another(t)
		for _, c := range []consumer{c, all} {
			c.run(t, "get", m.path+"@"+version)
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
	all.run(t, "test", "-vet=off", "./readme/...")
}

var latest = regexp.MustCompile(`go (?:install|run) github\.com/sqsonce/sqsonce/(\S*)@latest`)

// The archives have each program that a page tells to install or run, as go install builds it for a user who has neither the repository
// nor a module, and the image has those that it copies. The programs of this system's archive run.
//
// ARCHIVES is a folder for those of TARGETS, or of all systems (make archives).
func testPrograms(t *testing.T, c consumer, tree, version string) {
	out, targets := os.Getenv("ARCHIVES"), strings.Fields(os.Getenv("TARGETS"))
	cmd := exec.Command(mustAbs(t, "archives.sh"), version)
	cmd.Dir, cmd.Env = tree, append(c.env, "GOFLAGS=-modcacherw")
	if out == "" {
		// As the tests were compiled, for Go's cache: with -trimpath, or without cgo, everything would be compiled once more.
		cgo := strings.TrimSpace(c.run(t, "env", "CGO_ENABLED"))
		out, targets, cmd.Env = t.TempDir(), []string{runtime.GOOS + "/" + runtime.GOARCH}, append(cmd.Env, "FLAGS=", "CGO_ENABLED="+cgo)
	}
	cmd.Args = append(append(cmd.Args, out), targets...)
	must.Get(output(cmd))(t)
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = out
	must.Get(output(sums))(t)
	must.Get(output(exec.Command("tar", "-C", c.bin, "--strip-components=1", "-xzf",
		filepath.Join(out, fmt.Sprintf("sqsonce_%s_%s_%s.tar.gz", version[1:], runtime.GOOS, runtime.GOARCH)))))(t)
	if texts := must.Get(filepath.Glob(filepath.Join(c.bin, "licences/github.com/spf13/cobra@*/LICENSE*")))(t); len(texts) != 1 {
		t.Errorf("licences of what is linked: %q", texts)
	}
	for _, page := range append(must.Get(filepath.Glob(filepath.Join(tree, "docs/*.md")))(t), filepath.Join(tree, "README.md")) {
		for _, m := range latest.FindAllStringSubmatch(string(must.Get(os.ReadFile(page))(t)), -1) {
			must.Get(os.Stat(filepath.Join(c.bin, path.Base(m[1]))))(t)
		}
	}
	image := must.Get(os.ReadFile(filepath.Join(tree, "deploy/tools.Dockerfile")))(t)
	for _, m := range regexp.MustCompile(`linux/\$TARGETARCH/(\S+)`).FindAllStringSubmatch(string(image), -1) {
		must.Get(os.Stat(filepath.Join(c.bin, m[1])))(t)
	}
	runPrograms(t, c.bin, version)
}

// runPrograms serves a queue and a table with localaws, and asks for both with the others.
func runPrograms(t *testing.T, bin, version string) {
	localaws := exec.Command(filepath.Join(bin, "localaws"), "-addr", "127.0.0.1:0", "-queues", "orders", "-tables", "dedup")
	stdout := must.Get(localaws.StdoutPipe())(t)
	must.Do(t, localaws.Start())
	defer func() { _ = localaws.Wait() }()
	defer func() { _ = localaws.Process.Kill() }()
	url := strings.TrimSpace(must.Get(bufio.NewReader(stdout).ReadString('\n'))(t))
	for _, program := range []string{"sqsonce", "sqsonce-full"} {
		for args, says := range map[string]string{
			"version":                             version,
			"record ls --table dedup --json":      `"records":[]`,
			"dlq ls --queue orders --json":        "orders-dlq",
			"record ls --store dynamodb:dedup -h": "--store",
		} {
			cmd := exec.Command(filepath.Join(bin, program), strings.Fields(args)...)
			cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+url, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local")
			if out, err := output(cmd); err != nil || !strings.Contains(out, says) {
				t.Errorf("%s %s: %v, want %q: %s", program, args, err, says, out)
			}
		}
	}
}

// The test sees a module that requires a version of the main module which lacks what it uses.
func TestInstallSeesBrokenRequires(t *testing.T) {
	t.Parallel()
	version, old := newVersion(), newVersion()
	tree := copiedTree(t)
	prepare(t, tree, old)
	must.Do(t, os.RemoveAll(filepath.Join(tree, "internal/host")))
	c := newConsumer(t, tree, version)
	modules := published(t, tree)
	c.publish(t, tree, modules[0], old)
	sqlstore := modules[0].path + "/dedup/sqlstore"
	c.write(t, "main.go", fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", sqlstore))
	_, err := c.try("get", sqlstore+"@"+version)
	if err == nil {
		_, err = c.try("build", ".")
	}
	if err == nil || !strings.Contains(err.Error(), "internal/host") {
		t.Errorf("a program that requires sqlstore: %v, want an error that names internal/host", err)
	}
}

// copiedTree returns a copy of what git has or would add of the repository, with its changes. A tree without a repository is copied as it
// is, but for build output.
func copiedTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	list := `git -c safe.directory='*' ls-files -z --cached --others --exclude-standard` // in a container it is another user's
	if _, err := os.Stat(filepath.Join(repository, ".git")); errors.Is(err, fs.ErrNotExist) {
		list = `find . -type f -not -regex '.*/\(bin\|dist\|\.aws-sam\|node_modules\)/.*' -print0`
	}
	cmd := exec.Command("bash", "-o", "pipefail", "-c", list+` | tar --null --ignore-failed-read -chT - | tar -xC "$0"`, tree)
	cmd.Dir = repository
	must.Get(output(cmd))(t)
	return tree
}

// prepare makes the copy what its release would be.
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

// consumer is a module outside of the repository, with a module proxy of its own. What others wrote is in the user's module cache, and
// what the tests have compiled of it in Go's cache.
type consumer struct {
	dir, proxy, bin string
	cache           string // of modules
	env             []string
}

// newConsumer returns a consumer whose proxy has the published modules of tree as version.
func newConsumer(t *testing.T, tree, version string) consumer {
	t.Helper()
	env := must.Get(output(exec.Command("go", "env", "GOMODCACHE", "GOPROXY")))(t)
	cache, others, _ := strings.Cut(strings.TrimSpace(env), "\n")
	c := consumer{proxy: t.TempDir(), bin: t.TempDir(), cache: cache}
	for _, m := range published(t, tree) {
		c.publish(t, tree, m, version)
	}
	c.env = append(os.Environ(), "GOWORK=off", "GOPROXY=file://"+filepath.ToSlash(c.proxy)+","+others, "GOSUMDB=off", "GOBIN="+c.bin,
		"GOFLAGS=-mod=mod -modcacherw")
	return c.another(t)
}

// publish adds a version to the proxy. When the test ends it is taken out of the user's cache.
func (c consumer) publish(t *testing.T, tree string, m module, version string) {
	t.Helper()
	writeModule(t, c.proxy, tree, m, version)
	t.Cleanup(func() {
		name := must.Get(modversion.EscapePath(m.path))(t)
		files := must.Get(filepath.Glob(filepath.Join(c.cache, "cache/download", name, "@v", version+".*")))(t)
		// The list of versions is of the last proxy that was asked.
		for _, file := range append(files, filepath.Join(c.cache, name+"@"+version), filepath.Join(c.cache, "cache/download", name, "@v/list")) {
			must.Do(t, os.RemoveAll(file))
		}
	})
}

// another returns an empty module with the same proxy and cache.
func (c consumer) another(t *testing.T) consumer {
	t.Helper()
	c.dir = t.TempDir()
	c.run(t, "mod", "init", "example.com/consumer")
	return c
}

// writeModule adds version of m to the module proxy in the folder proxy.
func writeModule(t *testing.T, proxy, tree string, m module, version string) {
	t.Helper()
	dir := filepath.Join(proxy, must.Get(modversion.EscapePath(m.path))(t), "@v")
	must.Do(t, os.MkdirAll(dir, 0o755))
	goMod := must.Get(os.ReadFile(filepath.Join(tree, m.dir, "go.mod")))(t)
	file := must.Get(os.Create(filepath.Join(dir, version+".zip")))(t)
	must.Do(t, zip.CreateFromDir(file, modversion.Version{Path: m.path, Version: version}, filepath.Join(tree, m.dir)))
	must.Do(t, file.Close())
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339)),
		version + ".mod":  string(goMod),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
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
