package sqsonce_test

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// guides are the pages about one part each, with the folders of its code and the files that the page's Go code stands in.
var guides = map[string]struct{ folders, code []string }{
	"worker": {[]string{"sqsworker"}, []string{"sqsworker/example_test.go", "example_test.go"}},
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
	c := guideCode{comments: map[string]string{}, protocol: readText(t, "docs/protocol.md")}
	c.names, c.texts = readCode(t)
	for name, g := range guides {
		for _, folder := range g.folders {
			c.comments[name] += readComments(t, folder)
		}
	}
	return c
}

// problems says what is wrong with a guide. What it has in backquotes exists, if it is a Go name or a log line of ours. Each IAM
// action that the comments of its code name is on the page, and each number with a unit, and each above 999, in its text is in these comments or in
// the protocol, whose clauses have tests.
func (c *guideCode) problems(name, text string) (found []string) {
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
			found = append(found, q+" is in no comment of its code, nor in the protocol")
		}
	}
	return found
}

var (
	logLine   = regexp.MustCompile(`^[a-z]+: `)
	iamAction = regexp.MustCompile(`\b(sqs|dynamodb|kms|s3):[A-Z]\w+`)
	quantity  = regexp.MustCompile(`\b[\d.,]*\d (ms|s|min|h|days|KB|MB|KiB|MiB)\b|\b\d{1,3}(,\d{3})+\b`)
)

// prose returns the text of a page without its code and without its tables of options, which have a test of their own.
func prose(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	var kept []string
	inOptions := false
	for line := range strings.Lines(b.String()) {
		inOptions = strings.HasPrefix(line, "|") && (inOptions || strings.Contains(line, "Options` | default | limits |"))
		if !inOptions {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
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
	var b strings.Builder
	for _, file := range parseFolder(t, folder) {
		for _, c := range file.Comments {
			b.WriteString(oneLine(c.Text()) + "\n")
		}
	}
	return b.String()
}

func parseFolder(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	all, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(all) == 0 {
		t.Fatalf("no Go files in %s (%v)", folder, err)
	}
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// optionTable is a table of options: the type as its package calls it, its folder, and what makes a value with the options
// that a function sets. Without the last, of modules that this one does not import, rows are compared with the comments only.
type optionTable struct {
	page, folder, name string
	make               func(set func(options any)) error
}

var optionTables = []optionTable{
	{"worker", "sqsworker", "sqsworker.Options", func(set func(any)) error {
		_, err := sqsworker.New(&sqs.Client{}, optionsQueue, nothing, func(o *sqsworker.Options) { set(o) })
		return err
	}},
	{"lambda", "lambda", "lambda.Options", func(set func(any)) error {
		_, err := lambda.Wrap(nothing, func(o *lambda.Options) { set(o) })
		return err
	}},
	{"publisher", "fifo", "fifo.Options", func(set func(any)) error {
		_, err := fifo.NewPublisher(&sqs.Client{}, optionsQueue, "orders", func(o *fifo.Options) { set(o) })
		return err
	}},
	{"stores", "dedup", "dedup.Options", func(set func(any)) error {
		_, err := dedup.New(memstore.New(), "billing", func(o *dedup.Options) { set(o) })
		return err
	}},
	{"stores", "dedup/dynamostore", "dynamostore.Options", func(set func(any)) error {
		_, err := dynamostore.New(&dynamodb.Client{}, "dedup", func(o *dynamostore.Options) { set(o) })
		return err
	}},
	{"stores", "dedup/sqlstore", "sqlstore.Options", nil},
	{"stores", "dedup/sqlstore", "sqlstore.ProcessorOptions", nil},
	{"stores", "dedup/redisstore", "redisstore.Options", nil},
}

const optionsQueue = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"

func nothing(context.Context, *sqsonce.Message) error { return nil }

func TestOptionTables(t *testing.T) {
	t.Parallel()
	for _, table := range optionTables {
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			for _, problem := range table.problems(t, readText(t, page(table.page))) {
				t.Errorf("%s: %s", page(table.page), problem)
			}
		})
	}
}

// problems says what is wrong with a table of options. It has a row for each field and no other. A default is the one that New sets,
// where that is a number, and what the field's comment says. Limits are those of New: the least and the most are accepted, what is
// beyond them is refused.
func (table *optionTable) problems(t *testing.T, text string) (found []string) {
	rows, ok := optionRows(text, table.name)
	if !ok {
		return []string{"no table of " + table.name}
	}
	comments := fieldComments(t, table.folder, table.name)
	var defaults reflect.Value
	if table.make != nil { // New fills in the defaults where the function has left zeros
		if err := table.make(func(o any) { defaults = reflect.ValueOf(o).Elem() }); err != nil {
			t.Fatal(err)
		}
	}
	for name, comment := range comments {
		row, ok := rows[name]
		if !ok {
			found = append(found, "no row for "+name)
			continue
		}
		f := optionField{name: name, comment: comment, defaults: defaults, make: table.make}
		found = append(found, slices.Concat(f.defaultProblems(row.byDefault), f.limitProblems(row.limits))...)
	}
	for name := range rows {
		if _, ok := comments[name]; !ok {
			found = append(found, "a row for "+name+", which is no field")
		}
	}
	return found
}

type optionRow struct{ byDefault, limits string }

// optionRows reads the table whose first heading is the type.
func optionRows(text, name string) (map[string]optionRow, bool) {
	_, table, found := strings.Cut(text, "\n| `"+name+"` | default | limits |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]optionRow{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(line, "`", ""), "|")
		if len(cells) > 4 && !strings.HasPrefix(cells[1], "---") {
			rows[strings.TrimSpace(cells[1])] = optionRow{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		}
	}
	return rows, found
}

// fieldComments returns the comments of the exported fields of a type, without brackets. Fields of one line share theirs.
func fieldComments(t *testing.T, folder, name string) map[string]string {
	t.Helper()
	_, name, _ = strings.Cut(name, ".")
	comments := map[string]string{}
	for _, file := range parseFolder(t, folder) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
				for _, f := range spec.Type.(*ast.StructType).Fields.List {
					for _, ident := range f.Names {
						comments[ident.Name] = strings.NewReplacer("[", "", "]", "").Replace(oneLine(f.Doc.Text()))
					}
				}
			}
			return true
		})
	}
	if len(comments) == 0 {
		t.Fatalf("%s has no type %s", folder, name)
	}
	return comments
}

// optionField is a field of options. defaults is not valid, and make nil, where only the comment is known.
type optionField struct {
	name, comment string
	defaults      reflect.Value
	make          func(set func(options any)) error
}

var defaultText = regexp.MustCompile(`Default(?: and most)?: (.+)`)

func (f *optionField) defaultProblems(cell string) (found []string) {
	said := defaultText.FindStringSubmatch(f.comment)
	if said == nil {
		return []string{"the comment of " + f.name + " has no default"}
	}
	if actual := f.number(); actual != 0 {
		if n, ok := amount(cell); !ok || n != actual {
			found = append(found, fmt.Sprintf("%s: default %q, New sets %d", f.name, cell, actual))
		}
		if n, ok := amount(said[1]); ok && n != actual {
			found = append(found, fmt.Sprintf("%s: its comment says %q, New sets %d", f.name, said[1], actual))
		}
	} else if cell == "" || !strings.HasPrefix(said[1], cell) {
		found = append(found, fmt.Sprintf("%s: default %q, its comment says %q", f.name, cell, said[1]))
	}
	return found
}

// number returns the default of a field that is a number or a duration; 0: it has none, or is something else.
func (f *optionField) number() int64 {
	if !f.isNumber() {
		return 0
	}
	return f.defaults.FieldByName(f.name).Int()
}

func (f *optionField) isNumber() bool {
	if !f.defaults.IsValid() {
		return false
	}
	switch f.defaults.FieldByName(f.name).Type() {
	case reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[time.Duration]():
		return true
	}
	return false
}

// limitProblems tries the limits of a number: "least A", "most B", or neither; "negative" where New takes such a value.
func (f *optionField) limitProblems(cell string) (found []string) {
	if !f.isNumber() {
		if !strings.Contains(strings.ToLower(f.comment), cell) {
			found = append(found, fmt.Sprintf("%s: limits %q, its comment says nothing of them", f.name, cell))
		}
		return found
	}
	const far = int64(400 * 24 * time.Hour) // where there is no most: in a number as in a duration
	least, most := f.limit(cell, "least"), f.limit(cell, "most")
	accepted, refused := []int64{cmp.Or(most, far)}, []int64(nil)
	if most > 0 {
		refused = append(refused, most+1, most+int64(time.Second)) // some durations must be whole seconds
	}
	if least > 1 {
		accepted, refused = append(accepted, least), append(refused, least-1)
	}
	if strings.Contains(cell, "negative") {
		accepted = append(accepted, -1)
	} else {
		refused = append(refused, -1)
	}
	for _, n := range accepted {
		if err := f.try(n); err != nil {
			found = append(found, fmt.Sprintf("%s: limits %q, New refuses %d: %v", f.name, cell, n, err))
		}
	}
	for _, n := range refused {
		if f.try(n) == nil {
			found = append(found, fmt.Sprintf("%s: limits %q, New accepts %d", f.name, cell, n))
		}
	}
	return found
}

// limit returns the amount after a word in a cell; 0: there is none. It may be the default of another field.
func (f *optionField) limit(cell, word string) int64 {
	_, text, _ := strings.Cut(cell, word+" ")
	text, _, _ = strings.Cut(text, ";")
	if other := f.defaults.FieldByName(text); other.IsValid() {
		return other.Int()
	}
	n, _ := amount(text)
	return n
}

// try returns what New says of the field with that value.
func (f *optionField) try(n int64) error {
	err := f.make(func(o any) { reflect.ValueOf(o).Elem().FieldByName(f.name).SetInt(n) })
	if err != nil && strings.Contains(err.Error(), "Options."+f.name+":") {
		return err
	}
	return nil
}

var amountText = regexp.MustCompile(`^([\d,]+)(?: (ms|s|min|h|days|KB|MiB))?($|[;:,.)])`)

// amount reads a number with its unit at the beginning of a text: a duration in nanoseconds, a size in bytes.
func amount(text string) (int64, bool) {
	m := amountText.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
	units := map[string]int64{
		"": 1, "ms": int64(time.Millisecond), "s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour),
		"days": 24 * int64(time.Hour), "KB": 1 << 10, "MiB": 1 << 20,
	}
	return n * units[m[2]], err == nil
}

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
