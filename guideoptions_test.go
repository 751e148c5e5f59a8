package sqsonce_test

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/token"
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
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/sqsworker"
)

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
	{"outbox", "fifo/outbox", "outbox.Options", func(set func(any)) error {
		box, err := dynamooutbox.New(&dynamodb.Client{}, "outbox", "orders", "shop")
		if err != nil {
			return err
		}
		p, err := fifo.NewPublisher(&sqs.Client{}, optionsQueue, "shop")
		if err != nil {
			return err
		}
		_, err = outbox.NewRelay(box, p, func(o *outbox.Options) { set(o) })
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
	files, err := parseFolder(token.NewFileSet(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
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
