package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

// The code of pages stands in the Example functions, commands and templates of the repository, line for line, so that it compiles
// and runs. It leaves out checks of errors, and what a line of "..." stands for.
func TestCodeIsFromExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ page, language, files string }{
		{"README.md", "go", "*/*/example_test.go examples/quickstart/main.go"},
		{"docs/concepts.md", "go", "examples/quickstart/main.go"},
		{"docs/choose.md", "go", "*/*/example_test.go examples/quickstart/main.go"},
		{"docs/migrate.md", "go", "bench/migrate/*.go bench/migrate/*/*.go"},
		{"docs/migrate.md", "js", "bench/migrate/*/*.mjs"},
		{"docs/migrate.md", "python", "bench/migrate/*/*.py"},
		{"docs/worker.md", "go", "sqsworker/example_test.go sqsworker/ecsprotect/example_test.go status/example_test.go control/example_test.go example_test.go"},
		{"docs/lambda.md", "go", "lambda/example_test.go example_test.go"},
		{"docs/lambda.md", "yaml", "template.yaml deploy/function.yaml"},
		{"docs/stores.md", "go", "example_test.go dedup/*/example_test.go examples/quickstart/postgres/main.go"},
		{"docs/testing.md", "go", "dedup/example_test.go outcome_test.go localstack/example_test.go examples/orders/own_*_test.go dedup/memstore/memstore_test.go"},
		{"docs/tenants.md", "go", "limit/example_test.go"},
		{"docs/publisher.md", "go", "fifo/example_test.go example_test.go s3payload/example_test.go"},
		{"docs/outbox.md", "go", "fifo/outbox/*/example*_test.go dedup/sqlstore/sqloutbox/example*_test.go"},
	} {
		for _, problem := range codeProblems(t, readText(t, c.page), c.language, strings.Fields(c.files)...) {
			t.Errorf("%s: %s", c.page, problem)
		}
	}
	if len(codeProblems(t, "```go\nreturn w.Start(ctx)\n```\n", "go", "sqsworker/example_test.go")) != 1 {
		t.Error("code that no example has is not seen")
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(repository, name)))(t))
}

// codeProblems says which blocks of a page's text stand in no file.
func codeProblems(t *testing.T, text, language string, patterns ...string) (found []string) {
	t.Helper()
	var sources [][]string
	for _, pattern := range patterns {
		for _, name := range must.Get(filepath.Glob(filepath.Join(repository, pattern)))(t) {
			sources = append(sources, trimmedLines(string(must.Get(os.ReadFile(name))(t))))
		}
	}
	blocks := codeBlocks(text, language)
	if len(blocks) == 0 {
		return []string{"no code in " + language + ": nothing was checked"}
	}
	for _, block := range blocks {
		if !slices.ContainsFunc(sources, func(source []string) bool { return containsParts(source, block) }) {
			found = append(found, "in no example:\n"+strings.Join(block, "\n"))
		}
	}
	return found
}

func codeBlocks(text, language string) (blocks [][]string) {
	for i, part := range strings.Split(text, "```") {
		if code, ok := strings.CutPrefix(part, language+"\n"); ok && i%2 == 1 {
			blocks = append(blocks, trimmedLines(code))
		}
	}
	return blocks
}

// trimmedLines returns the lines that are not empty, without indentation, alignment and checks of errors.
func trimmedLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	for i := 0; i+2 < len(lines); i++ {
		if lines[i] == "if err != nil {" && lines[i+2] == "}" {
			lines = slices.Delete(lines, i, i+3)
			i--
		}
	}
	return lines
}

// containsParts reports whether source holds the parts of block, which "..." separates, one after the other.
func containsParts(source, block []string) bool {
	for len(block) > 0 {
		part := block
		if i := slices.Index(block, "..."); i >= 0 {
			part, block = block[:i], block[i+1:]
		} else {
			block = nil
		}
		i := indexLines(source, part)
		if i < 0 {
			return false
		}
		source = source[i+len(part):]
	}
	return true
}

func indexLines(source, part []string) int {
	for i := 0; i+len(part) <= len(source); i++ {
		if slices.Equal(source[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}
