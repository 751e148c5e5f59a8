package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/sqsonce/sqsonce/internal/must"
)

// Each relative link of a page, and each URL of ours in an alarm, leads somewhere, with its anchor; each page of docs is in the site's menu and linked in index.md.
func TestLinks(t *testing.T) {
	t.Parallel()
	files := textFiles(t)
	if n := len(pages(files)); n < 20 {
		t.Fatalf("%d pages: were they found?", n)
	}
	for _, problem := range slices.Concat(linkProblems(files), menuProblems(files), imageProblems(files)) {
		t.Error(problem)
	}
}

func TestLinksSeesWhatIsBroken(t *testing.T) {
	t.Parallel()
	files := textFiles(t)
	changed := maps.Clone(files)
	all := []struct{ file, text, problem string }{
		{"docs/compare.md", "[a](chose.md)", "chose.md"},
		{"docs/compare.md", "[a](../example)", "../example"},
		{"docs/compare.md", "[a](../../README.md)", "../../README.md"},
		{"docs/compare.md", "[a](choose.md#five-question)", "#five-question"},
		{"README.md", "see [a](#speeds)", "#speeds"},
		{"README.md", "| a | [b](docs/none.md) |", "docs/none.md"},
		{"docs/compare.md", "![a](images/none.svg)", "images/none.svg"},
		{"docs/new.md", "# New", "no entry in the nav"},
		{"docs/new.md", "", "docs/index.md does not link"},
		{"template.yaml", "# " + ownURL + "docs/runbook.md#nothing", "#nothing"},
		{"mkdocs.yml", "nav:\n  - None: none.md\n", "none.md"},
		{"docs/images/notxml.svg", "<svg><title></svg>", "notxml.svg"},
		{"docs/images/notitle.svg", "<svg><desc>x</desc></svg>", "notitle.svg: "},
		{"docs/images/lightonly.svg", "<svg><title>a</title><desc>x</desc></svg>", "prefers-color-scheme"},
		{"docs/images/script.svg", "<svg><title>a</title><desc>x</desc><script/></svg>", "script"},
		{"docs/images/notused.svg", "<svg/>", "no page shows"},
	}
	for _, broken := range all {
		text := broken.text
		if old, ok := changed[broken.file]; ok {
			text = string(old.Data) + "\n" + text + "\n"
		}
		changed[broken.file] = &fstest.MapFile{Data: []byte(text)}
	}
	problems := slices.Concat(linkProblems(changed), menuProblems(changed), imageProblems(changed))
	for _, broken := range all {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, broken.problem) }) {
			t.Errorf("%s, %s: %q, want one with %q", broken.file, broken.text, problems, broken.problem)
		}
	}
	// What looks like a link and is none.
	files["docs/code.md"] = &fstest.MapFile{Data: []byte("`[a](b.md)`\n\n```go\nm[k](x.md)\n```\n\n[a](https://example.com/b.md)\n")}
	if problems := linkProblems(files); len(problems) > 0 {
		t.Error(problems)
	}
}

// textFiles are the files of the repository, with the content of those that the checks read.
func textFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files, root := fstest.MapFS{}, os.DirFS(repository)
	must.Do(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains([]string{".git", "bin", "node_modules", ".aws-sam"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		files[name] = &fstest.MapFile{}
		if slices.Contains([]string{".md", ".svg", ".yml", ".yaml", ".go"}, path.Ext(name)) || name == "Makefile" {
			files[name].Data, err = fs.ReadFile(root, name)
		}
		return err
	}))
	return files
}

// pages are the names of the Markdown files.
func pages(files fstest.MapFS) (names []string) {
	for name := range files {
		if path.Ext(name) == ".md" && !strings.Contains(name, "testdata/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	markup     = regexp.MustCompile("[`*]|\\]\\([^)]*\\)|\\[")
)

// links are the relative targets of a page, with their anchors.
func links(page []byte) (targets []string) {
	page = codeBlock.ReplaceAll(page, nil)
	page = codeSpan.ReplaceAll(page, []byte("code")) // [`Example`](example_test.go) is a link
	for _, m := range linkTarget.FindAllSubmatch(page, -1) {
		if target := string(m[1]); !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
			targets = append(targets, target)
		}
	}
	return targets
}

const ownURL = "https://github.com/sqsonce/sqsonce/blob/main/"

var ownLink = regexp.MustCompile(regexp.QuoteMeta(ownURL) + `([\w./-]+(?:#[\w-]+)?)`)

func linkProblems(files fstest.MapFS) (problems []string) {
	check := func(from, base, target string) {
		file, anchor, _ := strings.Cut(target, "#")
		name := from
		if file != "" {
			name = path.Join(base, file)
		}
		if _, err := fs.Stat(files, name); err != nil {
			problems = append(problems, fmt.Sprintf("%s links %s: %v", from, target, err))
		} else if anchor != "" && path.Ext(name) == ".md" && !anchors(files[name].Data)[anchor] {
			problems = append(problems, fmt.Sprintf("%s links %s: no such heading", from, target))
		}
	}
	for _, page := range pages(files) {
		for _, target := range links(files[page].Data) {
			check(page, path.Dir(page), target)
		}
	}
	for name, file := range files {
		for _, m := range ownLink.FindAllSubmatch(file.Data, -1) {
			if path.Ext(name) == ".yaml" {
				check(name, ".", string(m[1]))
			}
		}
	}
	return problems
}

// anchors are those that GitHub gives a page's headings. mkdocs.yml has the site use the same.
func anchors(page []byte) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(codeBlock.ReplaceAll(page, nil), -1) {
		title := markup.ReplaceAllString(strings.TrimSpace(string(m[1])), "")
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)] = true
	}
	return found
}

var menuEntry = regexp.MustCompile(`(?m)^ +- .*: (\S+\.md)$`)

// menuProblems are pages of docs that a reader of the site or of index.md does not find.
func menuProblems(files fstest.MapFS) (problems []string) {
	menu := map[string]bool{}
	for _, m := range menuEntry.FindAllSubmatch(files["mkdocs.yml"].Data, -1) {
		name := "docs/" + string(m[1])
		menu[name] = true
		if files[name] == nil {
			problems = append(problems, "mkdocs.yml: the nav has no such page: "+name)
		}
	}
	index := links(files["docs/index.md"].Data)
	for _, name := range pages(files) {
		base, ok := strings.CutPrefix(name, "docs/")
		if !ok {
			continue
		}
		if !menu[name] {
			problems = append(problems, fmt.Sprintf("mkdocs.yml: no entry in the nav for %s", name))
		}
		if base != "index.md" && !slices.Contains(index, base) {
			problems = append(problems, fmt.Sprintf("docs/index.md does not link %s", base))
		}
	}
	if !slices.Contains(links(files["README.md"].Data), "docs/index.md") {
		problems = append(problems, "README.md does not link docs/index.md")
	}
	return problems
}

// imageProblems are pictures that not everybody can see: each is XML with a title and a description for those who hear it, has
// colours for light and dark, runs nothing, and is shown by a page.
func imageProblems(files fstest.MapFS) (problems []string) {
	for name, file := range files {
		if !strings.HasPrefix(name, "docs/images/") {
			continue
		}
		bad := func(problem string) { problems = append(problems, name+": "+problem) }
		if shown := slices.ContainsFunc(pages(files), func(page string) bool {
			return slices.ContainsFunc(links(files[page].Data), func(target string) bool { return path.Join(path.Dir(page), target) == name })
		}); !shown {
			bad("no page shows it")
		}
		if path.Ext(name) == ".png" { // a picture of the console
			continue
		}
		elements, err := elementsOf(file.Data)
		if err != nil {
			bad(err.Error())
		}
		for _, want := range []string{"title", "desc"} {
			if !elements[want] {
				bad("no " + want)
			}
		}
		if elements["script"] || elements["image"] || elements["foreignObject"] || bytes.Contains(file.Data, []byte("@import")) {
			bad("has a script, or loads something")
		}
		if !bytes.Contains(file.Data, []byte("prefers-color-scheme: dark")) {
			bad("no colours for prefers-color-scheme: dark")
		}
	}
	return problems
}

func elementsOf(text []byte) (map[string]bool, error) {
	found, d := map[string]bool{}, xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if e, ok := token.(xml.StartElement); ok {
			found[e.Name.Local] = true
		}
	}
}
