package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

const repository = "../.."

func TestMain(m *testing.M) { testserver.Main(m) }

// The site builds, in mkdocs's strict mode, loads nothing from elsewhere, and its links out of docs lead to the repository.
func TestSite(t *testing.T) {
	t.Parallel()
	python, out := testserver.MkDocs.Interpreter(t), t.TempDir()
	must.Do(t, build(t.Context(), python, repository, out))
	for page, want := range map[string]string{
		"index.html":        `href="https://github.com/sqsonce/sqsonce/blob/main/README.md"`,
		"choose.html":       `href="https://github.com/sqsonce/sqsonce/blob/main/examples/choose/example_fifo_test.go"`,
		"messages.html":     `href="https://github.com/sqsonce/sqsonce/tree/main/examples/publishers"`,
		"concepts.html":     `src="images/leases.svg"`,
		"faq.html":          `href="concepts.html#what-is-guaranteed"`,
		"architecture.html": `href="concepts.html#two-leases"`,
	} {
		text, err := os.ReadFile(filepath.Join(out, page))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s", page, want)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "search/search_index.json")); err != nil {
		t.Error("no search:", err)
	}
}

func TestSiteSeesWhatIsBroken(t *testing.T) {
	t.Parallel()
	python := testserver.MkDocs.Interpreter(t)
	for name, broken := range map[string]struct{ file, old, text, problem string }{
		"link":     {"docs/faq.md", "(choose.md)", "(chose.md)", "chose.md"},
		"anchor":   {"docs/faq.md", "#what-is-guaranteed", "#what-is-sure", "what-is-sure"},
		"no menu":  {"mkdocs.yml", "  - Concepts: concepts.md\n", "", "concepts.md"},
		"no page":  {"mkdocs.yml", "concepts.md", "concept.md", "concept.md"},
		"no hook":  {"mkdocs.yml", "hooks: [internal/site/links.py]", "", "../"},
		"script":   {"docs/faq.md", "# Questions\n", "# Questions\n\n<script src=\"https://example.com/a.js\"></script>\n", "https://example.com/a.js"},
		"font":     {"mkdocs.yml", "font: false", "font: {text: Roboto}", "https://fonts"},
		"diagram":  {"docs/faq.md", "# Questions\n", "# Questions\n\n<pre class=\"mermaid\"><code>flowchart LR</code></pre>\n", "mermaid"},
		"no files": {"mkdocs.yml", "docs_dir: docs", "docs_dir: documents", "documents"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			copyDocs(t, root)
			text, err := os.ReadFile(filepath.Join(root, broken.file))
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), broken.old, broken.text, 1)
			if changed == string(text) {
				t.Fatalf("%s has no %q", broken.file, broken.old)
			}
			must.Do(t, os.WriteFile(filepath.Join(root, broken.file), []byte(changed), 0o600))
			err = build(t.Context(), python, root, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), broken.problem) {
				t.Errorf("%v, want an error with %q", err, broken.problem)
			}
		})
	}
}

// copyDocs copies what mkdocs reads.
func copyDocs(t *testing.T, root string) {
	t.Helper()
	must.Do(t, os.CopyFS(filepath.Join(root, "docs"), os.DirFS(filepath.Join(repository, "docs"))))
	for _, name := range []string{"mkdocs.yml", "internal/site/links.py"} {
		text := must.Get(os.ReadFile(filepath.Join(repository, name)))(t)
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(root, name), text, 0o600))
	}
}
