package sqsonce_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guides are the pages about one part each, with the folders of its code and the files that the page's Go code stands in.
var guides = map[string]struct{ folders, code []string }{
	"worker": {[]string{"sqsworker", "status"}, []string{"sqsworker/example_test.go", "status/example_test.go", "example_test.go"}},
	"lambda": {[]string{"lambda"}, []string{"lambda/example_test.go", "example_test.go"}},
	"stores": {
		[]string{"dedup", "dedup/dynamostore", "dedup/sqlstore", "dedup/redisstore"},
		[]string{"example_test.go", "dedup/dynamostore/example_test.go", "dedup/sqlstore/example_test.go", "dedup/redisstore/example_test.go"},
	},
	"testing": {
		[]string{"localstack", "localstack/memsqs", "localstack/memdynamodb", "localstack/fault", "localstack/esm", "localstack/runtimeapi", "dedup/storetest"},
		[]string{"dedup/example_test.go", "outcome_test.go", "localstack/example_test.go", "examples/orders/own_*_test.go", "dedup/memstore/memstore_test.go"},
	},
	"publisher": {[]string{"fifo"}, []string{"fifo/example_test.go", "example_test.go"}},
	"outbox": {
		[]string{"fifo/outbox", "fifo/outbox/dynamooutbox", "dedup/sqlstore/sqloutbox"},
		[]string{"fifo/outbox/*/example*_test.go", "dedup/sqlstore/sqloutbox/example*_test.go"},
	},
}

func page(name string) string { return "docs/" + name + ".md" }

func TestGuideCodeIsFromExamples(t *testing.T) {
	t.Parallel()
	for name, g := range guides {
		checkCode(t, page(name), "go", g.code...)
	}
	checkCode(t, page("lambda"), "yaml", "template.yaml")
}

func TestGuides(t *testing.T) {
	t.Parallel()
	code := readGuideCode(t)
	for name := range guides {
		for _, problem := range code.problems(name, readText(t, page(name))) {
			t.Errorf("%s: %s", page(name), problem)
		}
	}
}

// guideCode is what a guide is compared with.
type guideCode struct {
	names    map[string]bool   // see readCode
	texts    string            // all strings of the code
	comments map[string]string // by guide: those of its folders
	protocol string
}

func readGuideCode(t *testing.T) guideCode {
	t.Helper()
	c := guideCode{comments: map[string]string{}, protocol: readText(t, "docs/protocol.md") + readText(t, "docs/protocol-outbox.md")}
	c.names, c.texts = readCode()
	for name, g := range guides {
		for _, folder := range g.folders {
			c.comments[name] += readComments(t, folder)
		}
	}
	return c
}

// problems says what is wrong with a guide. What it has in backquotes exists, if it is a Go name or a log line of ours. Each IAM
// action that the comments of its code name is on the page. Each number with a unit, and each above 999, is in these comments or
// in the protocols, whose clauses have tests.
func (c *guideCode) problems(name, text string) (found []string) {
	text = modelRun.ReplaceAllString(testName.ReplaceAllString(text, ""), "") // see TestOutboxPagesNameTheirTests
	for _, m := range inBackquotes.FindAllStringSubmatch(text, -1) {
		if goName.MatchString(m[1]) && !c.names[m[1]] {
			found = append(found, m[1]+" does not exist")
		}
		if logLine.MatchString(m[1]) && !strings.Contains(c.texts, m[1]) {
			found = append(found, "no string of the code has "+m[1])
		}
	}
	for _, action := range iamAction.FindAllString(c.comments[name], -1) {
		if _, short, _ := strings.Cut(action, ":"); !strings.Contains(text, short) {
			found = append(found, action+" is missing")
		}
	}
	known := quantity.FindAllString(c.comments[name]+c.protocol, -1)
	for _, q := range quantity.FindAllString(prose(text), -1) {
		if !slices.Contains(known, q) {
			found = append(found, q+" is in no comment of its code, nor in the protocols")
		}
	}
	return found
}

var (
	logLine   = regexp.MustCompile(`^[a-z]+: `)
	iamAction = regexp.MustCompile(`\b(sqs|dynamodb|kms|s3):[A-Z]\w+`)
	quantity  = regexp.MustCompile(`\b[\d.,]*\d (ms|s|min|h|days|KB|MB|KiB|MiB)\b|\b\d{1,3}(,\d{3})+\b`)
)

// prose returns the text of a page without its code, and without the defaults and limits of options, which have a test of their own.
func prose(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	var kept strings.Builder
	inOptions := false
	for line := range strings.Lines(b.String()) {
		inOptions = strings.HasPrefix(line, "|") && (inOptions || strings.Contains(line, "Options` | default | limits |"))
		if cells := strings.Split(line, "|"); inOptions && len(cells) > 4 {
			line = strings.Join(cells[4:], "|")
		}
		kept.WriteString(line)
	}
	return kept.String()
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readComments returns the comments of a folder's Go code, each as one line.
func readComments(t *testing.T, folder string) string {
	t.Helper()
	files, err := parseFolder(token.NewFileSet(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		for _, c := range file.Comments {
			b.WriteString(oneLine(c.Text()) + "\n")
		}
	}
	return b.String()
}

// parseFolder parses a folder's Go files, but for tests.
func parseFolder(fset *token.FileSet, folder string) (files []*ast.File, err error) {
	all, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(all) == 0 {
		return nil, fmt.Errorf("no Go files in %s (%v)", folder, err)
	}
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Each check sees a copy of the page in which one thing is wrong.
func TestGuideChecksSeeBrokenCopies(t *testing.T) {
	t.Parallel()
	code := readGuideCode(t)
	for _, c := range []struct{ page, old, broken, want string }{
		{"worker", "`sqsworker.Stats`", "`sqsworker.Status`", "sqsworker.Status does not exist"},
		{"worker", "`sqsworker: started`", "`sqsworker: begun`", "no string of the code has sqsworker: begun"},
		{"worker", "`sqs:ReceiveMessage`, ", "", "sqs:ReceiveMessage is missing"},
		{"worker", "doubling to 30 s", "doubling to 31 s", "31 s is in no comment"},
		{"worker", "the last 10,000 messages", "the last 30,000 messages", "30,000 is in no comment"},
		{"worker", "Below 5 s: a short", "Below 6.5 s: a short", "6.5 s is in no comment"},
		{"worker", "return w.Run(ctx) //", "return w.Start(ctx) //", "in no example:"},
		{"worker", "| `Held` |", "| `Kept` |", "no row for Held"},
		{"worker", "| `Held` |", "| `Kept` |", "a row for Kept"},
		{"worker", "| `StopTimeout` | 20 s |", "| `StopTimeout` | 25 s |", `StopTimeout: default "25 s", New sets`},
		{"worker", "| `DeadLetterQueue` | the one", "| `DeadLetterQueue` | one", "DeadLetterQueue: default"},
		{"worker", "| 15 s | least 1 s; most 20 s |", "| 15 s | least 1 s; most 21 s |", "New refuses 21"},
		{"worker", "| 15 s | least 1 s; most 20 s |", "| 15 s | least 1 s; most 19 s |", "New accepts 20000000000"},
		{"worker", "| 15 s | least 1 s; most 20 s |", "| 15 s | most 20 s; negative: none |", "New refuses -1"},
		{"worker", "most 1 s; negative: none", "most 1 s", "New accepts -1"},
		{"worker", "| most 120,000 | how many handlers", "| | how many handlers", "Concurrency: limits"},
		{"lambda", "least 500 ms and at most 5 s |", "least 600 ms and at most 5 s |", `Margin: default "5% of the time`},
		{"lambda", "| most 15 min |", "| |", "Margin: limits"},
		{"lambda", "| 100: 10 x Concurrency |", "| 10 x Concurrency |", "Abandoned: default"},
		{"lambda", "`kms:Decrypt`", "`kms`", "kms:Decrypt is missing"},
		{"publisher", "| `MaxMessages` | 10,000 |", "| `MaxMessages` | 1,000 |", "MaxMessages: default"},
		{"publisher", "285 s after the first", "286 s after the first", "286 s is in no comment"},
		{"publisher", "`fifo.ErrBufferFull`", "`fifo.ErrFull`", "fifo.ErrFull does not exist"},
		{"stores", "| `Retention` | 29 days |", "| `Retention` | 28 days |", "Retention: default"},
		{"stores", "| least 1 h |", "| least 2 h |", "New accepts 7199"},
		{"stores", "| `OnCrash` | Rerun |", "| `OnCrash` | Block |", "OnCrash: default"},
		{"stores", "| `Poll` | 1 s |", "| `Poll` | 2 s |", "Poll: default"},
		{"stores", "| at least 1 s | how long", "| at least 2 s | how long", "Lease: limits"},
		{"stores", "most 25; negative: no batches", "most 100; negative: no batches", "MaxBatch: limits"},
		{"outbox", "| `Page` | 10 |", "| `Page` | 11 |", "Page: default"},
		{"outbox", "least 10 s; most 2 min", "least 10 s; most 5 min", "MaxAge: limits"},
		{"outbox", "| `dynamodb:PutItem` on", "| `dynamodb:Put` on", "dynamodb:PutItem is missing"},
		{"outbox", "{Put: paid},", "{Put: payed},", "in no example:"},
		{"testing", "`fault.Replay`", "`fault.Repeat`", "fault.Repeat does not exist"},
		{"worker", "| `sqsworker.Options` |", "| `Options` |", "no table of sqsworker.Options"},
	} {
		text := readText(t, page(c.page))
		broken := strings.Replace(text, c.old, c.broken, 1)
		if broken == text {
			t.Errorf("%s has no %q", page(c.page), c.old)
		}
		found := append(code.problems(c.page, broken), codeProblems(t, broken, "go", guides[c.page].code...)...)
		for _, table := range optionTables {
			if table.page == c.page {
				found = append(found, table.problems(t, broken)...)
			}
		}
		if !strings.Contains(strings.Join(found, "\n"), c.want) {
			t.Errorf("%s with %q: found %q, want %q", page(c.page), c.broken, found, c.want)
		}
	}
}
