package sqsonce_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	inBackquotes = regexp.MustCompile("`([^`\n]+)`")
	goName       = regexp.MustCompile(`^[a-z0-9]+\.[A-Z]\w*(\.[A-Z]\w*)?$`)
	errorName    = regexp.MustCompile(`^[a-z0-9]+\.(Err[A-Z]\w*|[A-Z]\w*\.Error\(\))$`)
)

// Each exported error of a published package has a row in docs/troubleshooting.md. What the page has in backquotes exists:
// pkg.Name and pkg.Type.Field are declared, and text with a space, '_' or '-' (a log line, a key of one) is in a string.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	names, texts := readCode()
	rows := map[string]bool{}
	for line := range strings.Lines(readText(t, "docs/troubleshooting.md")) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range inBackquotes.FindAllStringSubmatch(cells[1], -1) {
				rows[m[1]] = true
			}
		}
		for _, m := range inBackquotes.FindAllStringSubmatch(line, -1) {
			if goName.MatchString(m[1]) && !names[m[1]] {
				t.Errorf("the page names %s, which does not exist", m[1])
			}
			if strings.ContainsAny(m[1], " _-") && !strings.Contains(texts, m[1]) {
				t.Errorf("the page quotes %q, which no string of the code has", m[1])
			}
		}
	}
	found := 0
	for name := range names {
		if !errorName.MatchString(name) {
			continue
		}
		if found++; !rows[strings.TrimSuffix(name, ".Error()")] {
			t.Errorf("%s has no row in docs/troubleshooting.md", name)
		}
	}
	if found < 60 {
		t.Errorf("%d errors, want at least 60: were they recognised?", found)
	}
}

// What any page has in backquotes as pkg.Name or pkg.Type.Field of one of our packages is declared.
func TestPagesNameWhatExists(t *testing.T) {
	t.Parallel()
	names, _ := readCode()
	ours := map[string]bool{}
	for name := range names {
		pkg, _, _ := strings.Cut(name, ".")
		ours[pkg] = true
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "README.md") {
		for _, m := range inBackquotes.FindAllStringSubmatch(readText(t, page), -1) {
			pkg, rest, _ := strings.Cut(m[1], ".")
			if !goName.MatchString(m[1]) || !ours[pkg] || strings.HasPrefix(rest, "Test") || strings.HasPrefix(rest, "Example") {
				continue
			}
			if found++; !names[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if found < 200 {
		t.Errorf("%d names, want at least 200: were they recognised?", found)
	}
}

// readCode returns what the published packages declare, as pkg.Name, pkg.Type.Method and pkg.Type.Field, and the strings of all.
var readCode = sync.OnceValues(func() (map[string]bool, string) {
	names, all := map[string]bool{}, strings.Builder{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && slices.Contains([]string{".git", "bench", "examples", "testdata"}, path) {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := file.Name.Name
		if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "internal") {
			pkg = "internal/" + pkg // no name that a user can write
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil { // not a number
					all.WriteString(text + "\n")
				}
			case *ast.FuncDecl:
				name := n.Name.Name
				if n.Recv != nil {
					name = strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*") + "." + name
				}
				if n.Name.Name == "Error" {
					name += "()" // not a field of this name
				}
				names[pkg+"."+name] = true
			case *ast.ValueSpec:
				for _, v := range n.Names {
					names[pkg+"."+v.Name] = true
				}
			case *ast.TypeSpec:
				names[pkg+"."+n.Name.Name] = true
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, v := range f.Names {
							names[pkg+"."+n.Name.Name+"."+v.Name] = true
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		panic(err)
	}
	return names, all.String()
})
