// Command site makes a site of docs with mkdocs, which it installs in the user's cache folder. It is run in the repository's
// root. The tests of this package check the links and commands of every page without mkdocs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

func main() {
	out := flag.String("out", "bin/site", "the `folder` that gets the site; what it has is deleted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	python, err := testserver.MkDocs.Python(ctx)
	if err == nil {
		err = build(ctx, python, ".", *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(filepath.Join(*out, "index.html"))
}

// build makes the site of the repository in root.
func build(ctx context.Context, python, root, out string) error {
	out, err := filepath.Abs(out) // mkdocs takes it relative to root
	if err != nil {
		return err
	}
	// Not with --quiet, which keeps --strict from seeing warnings.
	cmd := exec.CommandContext(ctx, python, "-m", "mkdocs", "build", "--strict", "--site-dir", out)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "NO_MKDOCS_2_WARNING=1", "PYTHONDONTWRITEBYTECODE=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mkdocs: %w\n%s", err, text)
	}
	return external(out)
}

var (
	// tags load something. Links (a) do not.
	tags = regexp.MustCompile(`(?i)<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*\b(?:src|href|data)="?(?:https?:)?//[^>]*>`)
	// The theme's script loads Mermaid from a server of others where a page has a diagram.
	diagram = regexp.MustCompile(`class="?mermaid\b`)
)

// external reports what a page of the site would load from elsewhere.
func external(site string) error {
	var errs []error
	pages := 0
	err := filepath.WalkDir(site, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages++
		for _, found := range slices.Concat(tags.FindAll(page, -1), diagram.FindAll(page, 1)) {
			errs = append(errs, fmt.Errorf("%s loads from elsewhere: %s", filepath.Base(path), found))
		}
		return nil
	})
	if pages == 0 {
		errs = append(errs, fmt.Errorf("%s has no page", site))
	}
	return errors.Join(append(errs, err)...)
}
