package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sqsonce/sqsonce/internal/must"
)

// What pages have in backquotes exists: Go names of our packages, log lines with their keys, files. The page about log lines has
// each one at WARN and ERROR, and each option is on a page.
func TestNames(t *testing.T) {
	t.Parallel()
	files := textFiles(t)
	for _, problem := range nameProblems(files, readCode(t, files)) {
		t.Error(problem)
	}
}

func TestNamesSeesWhatIsBroken(t *testing.T) {
	t.Parallel()
	files := textFiles(t)
	code := readCode(t, files)
	for _, c := range []struct{ file, old, broken, problem string }{
		{"docs/compare.md", "# Compare\n", "# Compare\n`fifo.ErrFull`\n", "fifo.ErrFull does not exist"},
		{"docs/compare.md", "# Compare\n", "# Compare\n`sqsworker: begun`\n", "sqsworker: begun"},
		{"docs/compare.md", "# Compare\n", "# Compare\n`internal/none/x.go`\n", "internal/none/x.go"},
		{"CONTRIBUTING.md", "`internal/host` backoff.go", "`internal/host` forward.go", "internal/host has no file forward.go"},
		{"docs/logs.md", "| `message_id` |", "| `message_ident` |", "message_ident"},
		{"docs/logs.md", "`sqsworker: delete failed`", "`sqsworker: release failed`", "no row sqsworker: delete failed"},
		{"docs/worker.md", "\n| `MaxHeld` |", "\n| `Kept` |", "sqsworker.Options: MaxHeld"},
		{"docs/worker.md", "\n| `MaxHeld` |", "\n| `Kept` |", "sqsworker.Options: Kept"},
		{"docs/observability.md", "`emf.Options`", "options", "emf.Options is on no page"},
	} {
		changed := maps.Clone(files)
		text := string(files[c.file].Data)
		changed[c.file] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, c.old, c.broken))}
		if !strings.Contains(text, c.old) {
			t.Errorf("%s has no %q", c.file, c.old)
		}
		if found := strings.Join(nameProblems(changed, code), "\n"); !strings.Contains(found, c.problem) {
			t.Errorf("%s with %q: found %q, want %q", c.file, c.broken, found, c.problem)
		}
	}
}

// declared is what the packages declare and say.
type declared struct {
	names   map[string]bool     // pkg.Name, pkg.Type.Method, pkg.Type.Field; of internal packages with internal/ before them
	options map[string][]string // the fields of each type pkg.Options
	texts   map[string]bool     // strings
	all     string              // of them
	loud    map[string]bool     // texts of the lines at WARN and ERROR
}

var (
	inBackquotes = regexp.MustCompile("`([^`\n]+)`")
	goName       = regexp.MustCompile(`^([a-z0-9]+)\.([A-Z]\w*)(\.[A-Z]\w*)?$`)
	logLine      = regexp.MustCompile(`^[a-z0-9]+: `)
	fileName     = regexp.MustCompile(`^[a-z.][\w.-]*/[\w./-]+$`)
	logKey       = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	optionRow    = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
)

func nameProblems(files fstest.MapFS, code *declared) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	ours, found, docs := map[string]bool{}, 0, ""
	for name := range code.names {
		pkg, _, _ := strings.Cut(name, ".")
		ours[pkg] = true
	}
	for _, page := range pages(files) {
		if page == "CHANGELOG.md" || path.Dir(page) != "docs" && path.Dir(page) != "." {
			continue
		}
		text := string(files[page].Data)
		docs += text
		for _, span := range inBackquotes.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			name := span[1]
			first, _, _ := strings.Cut(name, "/")
			m := goName.FindStringSubmatch(name)
			switch {
			case m != nil && ours[m[1]] && !testFunction.MatchString(m[2]):
				if found++; !code.names[name] {
					bad("%s: %s does not exist", page, name)
				}
			case logLine.MatchString(name) && ours[name[:strings.Index(name, ":")]] && !strings.Contains(code.all, name):
				bad("%s: no string of the code has %s", page, name)
			case fileName.MatchString(name) && folder(files, first) && !exists(files, name):
				bad("%s: there is no file %s", page, name)
			}
		}
	}
	if found < 200 {
		bad("%d names of ours, want at least 200: were they recognised?", found)
	}
	problems = append(problems, rowProblems(files)...)
	logs := string(files["docs/logs.md"].Data)
	for _, key := range logKey.FindAllStringSubmatch(logs, -1) {
		if !code.texts[key[1]] {
			bad("docs/logs.md: no line has the key %s", key[1])
		}
	}
	for text := range code.loud {
		if !strings.Contains(logs, "`"+text+"`") {
			bad("docs/logs.md: no row %s", text)
		}
	}
	for name, fields := range code.options {
		_, table, ok := strings.Cut(docs, "\n| `"+name+"` | default |")
		if !ok && !strings.Contains(docs, "`"+name) {
			bad("%s is on no page", name)
		}
		table, _, _ = strings.Cut(table, "\n\n")
		var rows []string
		for _, m := range optionRow.FindAllStringSubmatch(table, -1) {
			rows = append(rows, m[1])
		}
		for _, field := range append(slices.Clone(fields), rows...) {
			if ok && slices.Contains(fields, field) != slices.Contains(rows, field) {
				bad("%s: %s is a field or has a row, not both", name, field)
			}
		}
	}
	return problems
}

// rowProblems finds the files that a row of CONTRIBUTING.md names of a folder, as in "`fifo` event.go", and that are not there.
func rowProblems(files fstest.MapFS) (problems []string) {
	folders := map[string][]string{"root": {"."}} // by their last names
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = []string{dir}
			folders[path.Base(dir)] = append(folders[path.Base(dir)], dir)
		}
	}
	_, table, _ := strings.Cut(string(files["CONTRIBUTING.md"].Data), "\n| to change | see |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	found := 0
	for row := range strings.Lines(table) {
		var in []string
		for _, word := range rowWord.FindAllString(inBrackets.ReplaceAllString(row, ""), -1) {
			word = strings.Trim(word, "`")
			if path.Ext(word) != ".go" {
				if dirs, ok := folders[word]; ok {
					in = dirs
				}
				continue
			}
			found++
			if in != nil && !slices.ContainsFunc(in, func(dir string) bool { return exists(files, dir+"/"+word) }) {
				problems = append(problems, fmt.Sprintf("CONTRIBUTING.md: %s has no file %s", in[0], word))
			}
		}
	}
	if found < 80 {
		problems = append(problems, fmt.Sprintf("CONTRIBUTING.md: %d files in its rows, want at least 80: were they recognised?", found))
	}
	return problems
}

var (
	inBrackets = regexp.MustCompile(`\([^)]*\)`)
	rowWord    = regexp.MustCompile("`[a-z][\\w/]*`|\\broot\\b|\\b[a-z]\\w*\\.go\\b")
)

var testFunction = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)`)

func folder(files fstest.MapFS, name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

func exists(files fstest.MapFS, name string) bool {
	_, err := fs.Stat(files, path.Clean(name))
	return err == nil
}

// readCode reads the packages that users or operators see, not their tests.
func readCode(t *testing.T, files fstest.MapFS) *declared {
	t.Helper()
	code := &declared{names: map[string]bool{}, options: map[string][]string{}, texts: map[string]bool{}, loud: map[string]bool{}}
	for name, file := range files {
		first, _, _ := strings.Cut(name, "/")
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") || first == "bench" || first == "examples" {
			continue
		}
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), name, file.Data, parser.SkipObjectResolution))(t)
		pkg := parsed.Name.Name
		if slices.Contains(strings.Split(name, "/"), "internal") {
			pkg = "internal/" + pkg // no name that a user can write
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			code.add(pkg, n)
			if call, ok := n.(*ast.CallExpr); ok && first != "localstack" && first != "cmd" {
				code.addLine(call)
			}
			return true
		})
	}
	code.all = strings.Join(slices.Collect(maps.Keys(code.texts)), "\n")
	return code
}

func (d *declared) add(pkg string, n ast.Node) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(n.Value); err == nil { // not a number
			d.texts[text] = true
		}
	case *ast.FuncDecl:
		name := n.Name.Name
		if n.Recv != nil {
			name = strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*") + "." + name
		}
		d.names[pkg+"."+name] = true
	case *ast.ValueSpec:
		for _, v := range n.Names {
			d.names[pkg+"."+v.Name] = true
		}
	case *ast.TypeSpec:
		name := pkg + "." + n.Name.Name
		d.names[name] = true
		s, ok := n.Type.(*ast.StructType)
		for i := 0; ok && i < len(s.Fields.List); i++ {
			for _, v := range s.Fields.List[i].Names {
				d.names[name+"."+v.Name] = true
				if n.Name.Name == "Options" && v.IsExported() && !strings.HasPrefix(pkg, "internal/") {
					d.options[name] = append(d.options[name], v.Name)
				}
			}
		}
	}
}

// addLine adds the text of a call of a logger.
func (d *declared) addLine(call *ast.CallExpr) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Warn", "WarnContext", "Error", "ErrorContext"}, f.Sel.Name) {
		return
	}
	for _, arg := range call.Args[:min(2, len(call.Args))] {
		if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && logLine.MatchString(text) {
				d.loud[text] = true
			}
		}
	}
}
