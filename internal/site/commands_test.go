package main

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What a page tells to type exists: the targets and variables of make, the programs of go run with their flags, the packages of
// go get, build and test, and files of the repository.
func TestCommands(t *testing.T) {
	t.Parallel()
	files, checked := textFiles(t), 0
	for _, page := range pages(files) {
		if page == "CHANGELOG.md" { // what was
			continue
		}
		c := checker{files: files, page: page}
		c.check()
		checked += c.commands
		for _, problem := range c.problems {
			t.Error(problem)
		}
	}
	if checked < 60 {
		t.Errorf("%d commands: were they found?", checked)
	}
}

func TestCommandsSeesWhatIsBroken(t *testing.T) {
	t.Parallel()
	files := textFiles(t)
	for text, problem := range map[string]string{
		"`make demos`":                    "make demos",
		"`make demo STORES=sqlite`":       "STORES",
		"`make bench ARGS='-fast'`":       "-fast",
		"`make test ARGS='-runs X'`":      "-runs",
		"`make test PKG=./dedupe/...`":    "dedupe",
		"`EMULATORS=required make tests`": "make tests",
		"`go run ./bench/nothing`":        "bench/nothing",
		"`go run ./fifo`":                 "no program",
		"`-healthy URL`":                  "-healthy",
		"`go run ./bench -fast`":          "-fast",
		"`go test ./sqswork`":             "sqswork",
		"`go test -runs X ./fifo`":        "-runs",
		"`go get github.com/sqsonce/sqsonce/dedup/sqlitestore@latest`":  "sqlitestore",
		"`go run github.com/sqsonce/sqsonce/localstack/cmd/aws@latest`": "cmd/aws",
		"```console\n$ bin/localaws -queue orders\n```":                 "-queue",
		"```console\n$ bin/sqsonce dlq ls --klass x\n```":               "--klass",
		"```console\n$ cd bench && go run . -fast\n```":                 "-fast",
		"```console\n$ cd benches\n```":                                 "benches",
		"```console\n$ kubectl apply -f deploy/k8s/\n```":               "deploy/k8s",
		"```console\n$ true   # a note\n$ make demos && true\n```":      "make demos",
	} {
		changed := maps.Clone(files)
		changed["docs/new.md"] = &fstest.MapFile{Data: []byte(text)}
		c := checker{files: changed, page: "docs/new.md"}
		c.check()
		if len(c.problems) != 1 || !strings.Contains(c.problems[0], problem) {
			t.Errorf("%s: %q, want one with %q", text, c.problems, problem)
		}
	}
}

const module = "github.com/sqsonce/sqsonce"

type checker struct {
	files    fstest.MapFS
	page     string
	commands int
	problems []string

	dir  string          // where a block's commands are run; "?" outside of the repository
	made map[string]bool // folders that a block has made
}

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	typed        = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )*(?:make|go) [^`\n]+)`")
	flagSpan     = regexp.MustCompile("`-([a-z][\\w-]*)[^`\n]*`")
	comment      = regexp.MustCompile(` +# .*$`)
	separator    = regexp.MustCompile(` (?:&&|\|\||\||;) `)
	words        = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`)
	setting      = regexp.MustCompile(`^([A-Z_]+)=(.*)$`)
	plainPath    = regexp.MustCompile(`^[a-z][\w.-]*/[\w./-]*$`)
)

func (c *checker) bad(command, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("%s: `%s`: %s", c.page, command, fmt.Sprintf(format, args...)))
}

func (c *checker) check() {
	text := string(c.files[c.page].Data)
	for _, m := range typed.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		c.dir = "."
		c.line(m[1])
	}
	for _, m := range flagSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		if !slices.Contains(testFlags, m[1]) && !c.isFlag(m[1]) {
			c.bad(m[0], "a flag of no program")
		}
	}
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		c.dir, c.made = ".", map[string]bool{}
		for line := range strings.Lines(block[1]) {
			if line, ok := strings.CutPrefix(line, "$ "); ok {
				c.line(line)
			}
		}
	}
}

func (c *checker) line(line string) {
	line = comment.ReplaceAllString(strings.TrimSpace(line), "")
	for _, command := range separator.Split(line, -1) {
		args := words.FindAllString(command, -1)
		for len(args) > 0 && setting.MatchString(args[0]) {
			args = args[1:]
		}
		if len(args) == 0 {
			continue
		}
		c.commands++
		switch name, args := args[0], args[1:]; name {
		case "mkdir":
			c.made[strings.Join(args, " ")] = true
		case "cd":
			c.cd(command, args[0])
		case "make":
			c.makes(command, args)
		case "go":
			c.goes(command, args)
		default:
			if dir := c.program(path.Base(name)); strings.HasPrefix(name, "bin/") && dir != "" {
				c.flags(command, args, c.flagsOf(dir))
			}
			c.paths(command, args)
		}
	}
}

func (c *checker) exists(name string) bool { return exists(c.files, name) }

func (c *checker) cd(command, dir string) {
	dir = strings.TrimPrefix(dir, "sqsonce/") // of a clone
	switch {
	case c.made[dir]:
		c.dir = "?"
	case c.exists(path.Join(c.dir, dir)):
		c.dir = path.Join(c.dir, dir)
	default:
		c.bad(command, "no folder %s", dir)
	}
}

var (
	targets = regexp.MustCompile(`(?m)^([A-Za-z-]+(?: [A-Za-z-]+)*):`)
	recipes = `(?m)^%s:.*\n((?:\t.*\n)+)`
	runs    = regexp.MustCompile(`(?:cd (\S+) && )?go (run|test)(?: (\.\S*))?.*\$\(ARGS\)`)
)

func (c *checker) makes(command string, args []string) {
	makefile := string(c.files["Makefile"].Data)
	all := map[string]bool{}
	for _, m := range targets.FindAllStringSubmatch(makefile, -1) {
		for _, name := range strings.Fields(m[1]) {
			all[name] = true
		}
	}
	target := ""
	for _, arg := range args {
		m := setting.FindStringSubmatch(arg)
		switch {
		case m == nil && !all[arg]:
			c.bad(command, "no target for make %s", arg)
		case m == nil:
			target = arg
		case !strings.Contains(makefile, "$("+m[1]):
			c.bad(command, "the Makefile has no %s", m[1])
		case m[1] == "PKG":
			c.packages(command, []string{"./" + strings.TrimPrefix(m[2], "./")})
		case m[1] == "ARGS":
			known := testFlags
			recipe := regexp.MustCompile(fmt.Sprintf(recipes, target)).FindStringSubmatch(makefile)
			if recipe == nil {
				c.bad(command, "a target before ARGS")
				continue
			}
			if run := runs.FindStringSubmatch(recipe[1]); run != nil && run[2] == "run" {
				known = c.flagsOf(path.Join(run[1], run[3]))
			}
			c.flags(command, words.FindAllString(strings.Trim(m[2], `'"`), -1), known)
		}
	}
}

// testFlags are those of go test and go build that pages use, and -update of the golden files.
var testFlags = []string{"run", "bench", "benchtime", "count", "fuzz", "fuzztime", "race", "short", "tags", "timeout", "update", "v"}

func (c *checker) goes(command string, args []string) {
	if len(args) == 0 {
		return
	}
	verb, args := args[0], args[1:]
	switch verb {
	case "run":
		if len(args) == 0 {
			return
		}
		if strings.Contains(args[0], "@") && !strings.HasPrefix(args[0], module) {
			return // a program of others
		}
		dir := c.folder(args[0])
		if dir == "" || !c.exists(dir) || len(c.mainFiles(dir)) == 0 {
			c.bad(command, "no program %s", args[0])
			return
		}
		c.flags(command, args[1:], c.flagsOf(dir))
	case "test":
		c.flags(command, args, testFlags)
		c.packages(command, args)
	case "build", "get", "install", "vet":
		c.packages(command, args)
	}
}

// folder is that of a package in the repository; "" where it is elsewhere, or stands for any.
func (c *checker) folder(pkg string) string {
	pkg, _, _ = strings.Cut(pkg, "@")
	switch {
	case pkg == module:
		return "."
	case strings.HasPrefix(pkg, module+"/"):
		return strings.TrimPrefix(pkg, module+"/")
	case c.dir == "?":
	case pkg == ".", strings.HasPrefix(pkg, "./") && strings.ToUpper(pkg) != pkg: // ./PACKAGE is any
		return path.Join(c.dir, strings.TrimSuffix(pkg, "..."))
	}
	return ""
}

func (c *checker) packages(command string, args []string) {
	for _, arg := range args {
		if dir := c.folder(arg); dir != "" && !c.exists(dir) {
			c.bad(command, "no package %s", arg)
		}
	}
}

var programName = regexp.MustCompile(`(?m)^package main$`)

// mainFiles are the files of the program in a folder.
func (c *checker) mainFiles(dir string) (names []string) {
	for name, file := range c.files {
		if path.Dir(name) == path.Clean(dir) && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && programName.Match(file.Data) {
			names = append(names, name)
		}
	}
	return names
}

// program is the folder of the program with this name, outside of internal; "" if there is none.
func (c *checker) program(name string) string {
	for file := range c.files {
		if path.Base(file) == "main.go" && path.Base(path.Dir(file)) == name && !strings.Contains(file, "internal/") {
			return path.Dir(file)
		}
	}
	return ""
}

var flagNames = regexp.MustCompile(`\.(?:Bool|Duration|Float64|Func|Int|Int64|String|StringArray|StringSlice|Uint|BoolFunc)?(?:Var)?\((?:&?[\w.]+, )?"([\w-]+)"`)

// flagsOf are the flags of the program in a folder, and of the package cli beside it, which is all of a program without its options.
func (c *checker) flagsOf(dir string) (names []string) {
	files := c.mainFiles(dir)
	for name := range c.files {
		if path.Dir(name) == path.Join(dir, "cli") && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
	}
	for _, name := range files {
		for _, m := range flagNames.FindAllSubmatch(c.files[name].Data, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// isFlag reports whether a program of the repository has the flag.
func (c *checker) isFlag(name string) bool {
	for file := range c.files {
		if path.Base(file) == "main.go" && slices.Contains(c.flagsOf(path.Dir(file)), name) {
			return true
		}
	}
	return false
}

func (c *checker) flags(command string, args, known []string) {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && !slices.Contains(known, name) {
			c.bad(command, "no flag %s, only %q", arg, known)
		}
	}
}

// paths are arguments that begin with a folder of the repository.
func (c *checker) paths(command string, args []string) {
	for _, arg := range args {
		first, _, _ := strings.Cut(arg, "/")
		if c.dir == "." && plainPath.MatchString(arg) && c.exists(first) && !c.exists(arg) {
			c.bad(command, "no file %s", arg)
		}
	}
}
