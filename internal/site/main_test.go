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
		"compare.html":      `href="choose.html#disadvantages-of-a-record"`,
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
	type edit struct{ file, old, text, problem string }
	for name, edits := range map[string][]edit{ // in one build, which takes seconds
		"links": {
			{"docs/compare.md", "(migrate.md)", "(migrat.md)", "migrat.md"},
			{"docs/compare.md", "#disadvantages-of-a-record", "#advantages-of-a-record", "advantages-of-a-record"},
			{"mkdocs.yml", "concepts.md", "concept.md", "'concept.md'"},
			{"mkdocs.yml", "concept.md", "concept.md", "- concepts.md"}, // it has no entry in the menu
		},
		"no hook": {{"mkdocs.yml", "hooks: [internal/site/links.py]", "", "../"}},
		"loads": {
			{"docs/compare.md", "# Compare\n", "# Compare\n\n<script src=\"https://example.com/a.js\"></script>\n", "https://example.com/a.js"},
			{"mkdocs.yml", "font: false", "font: {text: Roboto}", "https://fonts"},
			{"docs/compare.md", "# Compare\n", "# Compare\n\n<pre class=\"mermaid\"><code>flowchart LR</code></pre>\n", "mermaid"},
		},
		"no files": {{"mkdocs.yml", "docs_dir: docs", "docs_dir: documents", "documents"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			copyDocs(t, root)
			for _, e := range edits {
				text := string(must.Get(os.ReadFile(filepath.Join(root, e.file)))(t))
				if !strings.Contains(text, e.old) {
					t.Fatalf("%s has no %q", e.file, e.old)
				}
				must.Do(t, os.WriteFile(filepath.Join(root, e.file), []byte(strings.Replace(text, e.old, e.text, 1)), 0o600))
			}
			err := build(t.Context(), python, root, t.TempDir())
			for _, e := range edits {
				if err == nil || !strings.Contains(err.Error(), e.problem) {
					t.Errorf("%v, want an error with %q", err, e.problem)
				}
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
