// Command words counts signs of hard English in README, docs/ and the doc comments of public packages, and prints the worst
// passages. It fails above the aims. Arguments are the files to read, all of the repository by default.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// A sign makes a reader read twice. Its aim is a number in 1,000 words.
type sign struct {
	name string
	find *regexp.Regexp
	aim  float64
}

var signs = []sign{
	{"what, as a noun", regexp.MustCompile(`(?i)\bwhat\b`), 1.5},
	{"negations", regexp.MustCompile(`(?i)\b(no|nothing|nobody|none)\b`), 4},
	{"semicolons", regexp.MustCompile(`;`), 3},
	{"wrong register", regexp.MustCompile(`(?i)\b((is|was|are|were) away|mend(s|ed|ing)?|beside|the whole of it|being asked)\b|\bis over([.,;:)]| [a-z])`), 0},
	{"maintainer's notes", regexp.MustCompile(`(?i)\ba test (runs|reads|types|compares|checks)\b`), 0},
}

const (
	longSentence, longAim = 40, 2.0 // Words, and how many sentences in 100 may have more.
	youAim                = 8.0     // Guides address the reader so often in 1,000 words.
)

var (
	page      = regexp.MustCompile(`^(README|docs/[^/]*)\.md$`)
	reference = regexp.MustCompile(`^docs/(protocol|protocol-outbox|limits|logs|architecture)\.md$|\.go$`)
	notPublic = regexp.MustCompile(`_test\.go$|(^|/)(internal|testdata|cmd|examples|bench)/`)

	hidden  = regexp.MustCompile("(?ms)^ *```.*?^ *```|<!--.*?-->|<[^>]*>|^#[^\\n]*$|^\\|[-|: ]+\\|$")
	quoted  = regexp.MustCompile("`[^`]*`")
	links   = regexp.MustCompile(`\]\([^)]*\)`)
	borders = regexp.MustCompile(`\n\s*\n|\n\s*([-*]|\d+\.) |\|`)
	ends    = regexp.MustCompile(`[.?!:]\s+`)
	asked   = regexp.MustCompile(`(?i)\bwhat\b([^.?!;]*\?)`) // A "what" that asks.
	you     = regexp.MustCompile(`(?i)\byou(r|rs|rself)?\b`)
)

type passage struct{ file, text string }

func main() {
	worst := flag.Int("n", 10, "print the worst `n` passages")
	flag.Parse()
	files := flag.Args()
	if len(files) == 0 {
		out, err := exec.Command("git", "ls-files", "*.md", "*.go").Output()
		exitIf(err)
		files = strings.Fields(string(out))
	}
	kinds := map[bool][]passage{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		exitIf(err)
		var parts []string
		switch {
		case page.MatchString(name):
			text := links.ReplaceAllString(quoted.ReplaceAllString(hidden.ReplaceAllString(string(text), "\n\n"), "X"), "")
			parts = borders.Split(text, -1)
		case strings.HasSuffix(name, ".go") && !notPublic.MatchString(name):
			parts, err = docComments(name, text)
			exitIf(err)
		}
		for _, part := range parts {
			if words := strings.Fields(part); len(words) > 1 {
				is := reference.MatchString(name)
				kinds[is] = append(kinds[is], passage{name, strings.Join(words, " ")})
			}
		}
	}
	guides, rest := report("guides", kinds[false], *worst, true), report("reference and doc comments", kinds[true], *worst, false)
	if !guides || !rest {
		os.Exit(1)
	}
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// docComments returns the paragraphs of a file's comments on exported names, without code.
func docComments(name string, text []byte) (found []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil || file.Name.Name == "main" {
		return nil, err
	}
	add := func(groups ...*ast.CommentGroup) {
		for _, group := range groups {
			for part := range strings.SplitSeq(group.Text(), "\n\n") {
				if !strings.HasPrefix(part, "\t") {
					found = append(found, part)
				}
			}
		}
	}
	add(file.Doc)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() {
				add(n.Doc)
			}
			return false
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc)
			return n.Name.IsExported()
		case *ast.Field:
			if len(n.Names) > 0 && n.Names[0].IsExported() {
				add(n.Doc, n.Comment)
			}
		}
		return true
	})
	return found, nil
}

// report prints the counts and the worst passages, and says whether all aims are met.
func report(title string, all []passage, worst int, guide bool) (ok bool) {
	ok = true
	words, sentences, long, addressed := 0, 0, 0, 0
	counts, score := make([]int, len(signs)), map[passage]int{}
	for _, p := range all {
		text := asked.ReplaceAllString(p.text, "which$1")
		words += len(strings.Fields(text))
		addressed += len(you.FindAllString(text, -1))
		for _, sentence := range ends.Split(text, -1) {
			sentences++
			if len(strings.Fields(sentence)) > longSentence {
				long, score[p] = long+1, score[p]+1
			}
		}
		for i, sign := range signs {
			n := len(sign.find.FindAllString(text, -1))
			counts[i], score[p] = counts[i]+n, score[p]+n
		}
	}
	if words == 0 {
		return true
	}
	fmt.Printf("%s: %d words\n", title, words)
	line := func(name string, got, aim float64, met bool) {
		ok = ok && met
		fmt.Printf("  %-20s %6.1f  aim %.1f%s\n", name, got, aim, map[bool]string{false: "  <- missed"}[met])
	}
	for i, sign := range signs {
		got := 1000 * float64(counts[i]) / float64(words)
		line(sign.name, got, sign.aim, got <= sign.aim)
	}
	got := 100 * float64(long) / float64(sentences)
	line("long sentences, %", got, longAim, got <= longAim)
	if got := 1000 * float64(addressed) / float64(words); guide {
		line("you", got, youAim, got >= youAim)
	}
	slices.SortStableFunc(all, func(a, b passage) int { return cmp.Compare(score[b], score[a]) })
	for _, p := range all[:min(worst, len(all))] {
		if score[p] > 0 {
			fmt.Printf("  %d in %s: %.160s\n", score[p], p.file, p.text)
		}
	}
	return ok
}
