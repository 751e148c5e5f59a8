package sqsonce_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// limits are the numbers of sqsonce in docs/limits.md: the section, the row, and where the code has them. "Options.X" is the
// default that the package sets for the field.
var limits = []struct{ section, row, pkg, name string }{
	{"Records", "consumer's name", "dedup", "maxConsumer"},
	{"Records", "record's key (consumer, `#`, event's key)", "dedup", "maxKey"},
	{"Records", "Lease", "dedup", "Options.Lease"},
	{"Records", "Lease", "dedup", "leastLease"},
	{"Records", "Retention", "dedup", "Options.Retention"},
	{"Records", "Retention", "dedup", "leastRetention"},
	{"Records", "CallTimeout", "dedup", "Options.CallTimeout"},
	{"Records", "Wait", "dedup", "Options.Wait"},
	{"Records", "CacheSize", "dedup", "Options.CacheSize"},
	{"Records", "completed keys in the process", "dedup", "rememberFor"},
	{"Records", "MaxResult", "dedup", "Options.MaxResult"},
	{"Records", "MaxResult", "dedup", "mostResult"},
	{"Records", "error text in the record", "dedup/sqlstore", "maxError"},
	{"Records", "error text in the record", "dedup/memstore", "maxError"},
	{"Records", "writes in a `dynamostore.Tx`", "dedup/dynamostore", "MaxWrites"},
	{"Records", "`dynamostore.Options.MaxBatch`", "dedup/dynamostore", "Options.MaxBatch"},
	{"Records", "`dynamostore.Options.Linger`", "dedup/dynamostore", "defaultLinger"},
	{"Records", "wait after a lease's end, for clocks", "dedup/dynamostore", "takeoverMargin"},

	{"Worker", "Concurrency", "sqsworker", "Options.Concurrency"},
	{"Worker", "Concurrency", "sqsworker", "maxConcurrency"},
	{"Worker", "InFlight", "sqsworker", "maxInFlight"},
	{"Worker", "Held", "sqsworker", "maxHeld"},
	{"Worker", "Bytes", "sqsworker", "Options.Bytes"},
	{"Worker", "Bytes", "sqsworker", "maxBody"},
	{"Worker", "Receivers", "sqsworker", "receiversPerCPU"},
	{"Worker", "Receivers", "sqsworker", "maxReceivers"},
	{"Worker", "Wait", "sqsworker", "Options.Wait"},
	{"Worker", "Wait", "sqsworker", "maxWait"},
	{"Worker", "Visibility", "sqsworker", "Options.Visibility"},
	{"Worker", "Visibility", "sqsworker", "maxVisibility"},
	{"Worker", "MaxExtension", "sqsworker", "Options.MaxExtension"},
	{"Worker", "DeleteLinger", "sqsworker", "Options.DeleteLinger"},
	{"Worker", "Tries", "sqsworker", "mostTries"},
	{"Worker", "Tries", "sqsworker", "unknownTries"},
	{"Worker", "StopTimeout", "sqsworker", "Options.StopTimeout"},
	{"Worker", "StopGrace", "sqsworker", "Options.StopGrace"},
	{"Worker", "delays after a failed try", "internal/host", "backoff[0]"},
	{"Worker", "delays after a failed try", "internal/host", "backoff[1]"},
	{"Worker", "delays after a failed try", "internal/host", "backoff[2]"},

	{"Function", "Concurrency", "lambda", "Options.Concurrency"},
	{"Function", "Margin", "lambda", "leastMargin"},
	{"Function", "Margin", "lambda", "mostMargin"},
	{"Function", "Margin", "lambda", "maxTimeout"},
	{"Function", "Abandoned", "lambda", ""},
	{"Function", "delay after a failed try", "lambda", "minDelay"},
	{"Function", "delay after a failed try", "lambda", "maxDelay"},
	{"Function", "delay while something is unavailable", "lambda", "firstUnavailable"},
	{"Function", "delay while something is unavailable", "lambda", "maxUnavailable"},

	{"Publisher", "InFlight", "fifo", "Options.InFlight"},
	{"Publisher", "Linger", "fifo", "Options.Linger"},
	{"Publisher", "MaxMessages", "fifo", "Options.MaxMessages"},
	{"Publisher", "MaxBytes", "fifo", "Options.MaxBytes"},
	{"Publisher", "MaxBytes", "fifo", "maxMessageBytes"},
	{"Publisher", "AttemptTimeout", "fifo", "Options.AttemptTimeout"},
	{"Publisher", "AttemptTimeout", "fifo", "maxAttemptTimeout"},
	{"Publisher", "attempts of one event", "fifo", "latestEnd"},
	{"Publisher", "attempts of one event", "fifo", "mostRepeats"},
	{"Publisher", "message", "fifo", "maxMessageBytes"},
	{"Publisher", "attributes of an event", "fifo", "maxAttributes"},

	{"Large bodies", "`PublisherOptions.MaxBytes`, `ResolveOptions.MaxBytes`", "s3payload", "defaultMaxBytes"},
	{"Large bodies", "attributes of an event, with `s3payload`", "s3payload", "maxAttributes"},
	{"Large bodies", "Timeout", "s3payload", "defaultTimeout"},

	{"Dead-letter copy", "`reject-reason`", "internal/deadletter", "maxReason"},
	{"Dead-letter copy", "attributes of the copy", "internal/deadletter", "maxAttributes"},
}

// The numbers of docs/limits.md are those of the code, and no row of its tables about sqsonce is left out.
func TestLimits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range limitsProblems(string(page), codeNumbers(t)) {
		t.Error(problem)
	}
}

// The check sees a number that is wrong in either place, a row without a check and a check without a row.
func TestLimitsSeesChanges(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	page, numbers := string(text), codeNumbers(t)
	for name, broken := range map[string]string{
		"default":   strings.Replace(page, "| Retention | 29 days |", "| Retention | 28 days |", 1),
		"limit":     strings.Replace(page, "| 64 KB | 350 KB |", "| 64 KB | 1,350 KB |", 1),
		"new row":   strings.Replace(page, "| CallTimeout |", "| Patience | 7 s | |\n| CallTimeout |", 1),
		"lost row":  strings.Replace(page, "| MaxExtension |", "| Maximum |", 1),
		"same text": page,
	} {
		problems := limitsProblems(broken, numbers)
		if (broken == page) != (len(problems) == 0) {
			t.Errorf("%s: %q", name, problems)
		}
	}
	changed := maps.Clone(numbers)
	changed["sqsworker.maxWait"] = "21 s"
	if problems := limitsProblems(page, changed); len(problems) != 1 {
		t.Errorf("another limit in the code: %q", problems)
	}
}

func limitsProblems(page string, numbers map[string]string) (problems []string) {
	checked := map[string]bool{}
	rows := limitsRows(page)
	for _, l := range limits {
		row := l.section + ": " + l.row
		checked[row] = true
		text, ok := rows[row]
		if !ok {
			problems = append(problems, "no row "+row)
			continue
		}
		if l.name == "" { // a product of other options
			continue
		}
		number, ok := numbers[l.pkg+"."+l.name]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s.%s is no constant", l.pkg, l.name))
		} else if !regexp.MustCompile(`(^|[^\d,.])` + regexp.QuoteMeta(number) + `($|[^\w])`).MatchString(text) {
			problems = append(problems, fmt.Sprintf("%s: %q has no %q, which %s.%s is", row, text, number, l.pkg, l.name))
		}
	}
	for row := range rows {
		if !checked[row] {
			problems = append(problems, "not compared with the code: "+row)
		}
	}
	return problems
}

// limitsRows are the cells of the tables in the sections of limits, by "section: first cell".
func limitsRows(page string) map[string]string {
	rows := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		ours := false
		for _, l := range limits {
			ours = ours || l.section == title
		}
		for line := range strings.Lines(text) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if ours && len(cells) > 2 && strings.Trim(cells[1], " -") != "" && cells[1] != " what " {
				rows[title+": "+strings.TrimSpace(cells[1])] = strings.Join(cells[2:], "|")
			}
		}
	}
	return rows
}

// codeNumbers are the constants of the packages, and what setDefaults sets, in the words of the page.
func codeNumbers(t *testing.T) map[string]string {
	t.Helper()
	folders := map[string]bool{}
	for _, l := range limits {
		folders[l.pkg] = true
	}
	numbers := map[string]string{}
	loader := &constants{fset: token.NewFileSet()}
	loader.std = importer.ForCompiler(loader.fset, "source", nil)
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		_, info, files, err := loader.load(folder)
		if err != nil {
			t.Fatal(err)
		}
		add := func(name string, e ast.Expr) {
			if tv, ok := info.Types[e]; ok && tv.Value != nil {
				numbers[folder+"."+name] = inWords(name, tv)
			}
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, name := range n.Names {
						if i >= len(n.Values) {
							continue
						}
						add(name.Name, n.Values[i])
						if list, ok := n.Values[i].(*ast.CompositeLit); ok {
							for j, e := range list.Elts {
								add(fmt.Sprintf("%s[%d]", name.Name, j), e)
							}
						}
					}
				case *ast.AssignStmt: // o.Wait = cmp.Or(o.Wait, defaultWait)
					call, ok := n.Rhs[0].(*ast.CallExpr)
					if left := types.ExprString(n.Lhs[0]); ok && strings.HasPrefix(left, "o.") && types.ExprString(call.Fun) == "cmp.Or" {
						add("Options."+strings.TrimPrefix(left, "o."), call.Args[1])
					}
				}
				return true
			})
		}
	}
	return numbers
}

// constants type-checks packages as far as their constants need it: of what they import only time, cmp and our own constants.
type constants struct {
	fset *token.FileSet
	std  types.Importer
}

func (c *constants) Import(path string) (*types.Package, error) {
	switch {
	case path == "time", path == "cmp":
		return c.std.Import(path)
	case path == module+"/internal/host":
		pkg, _, _, err := c.load("internal/host")
		return pkg, err
	}
	return nil, errors.New("not needed")
}

func (c *constants) load(folder string) (*types.Package, *types.Info, []*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, nil, nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(c.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: c, Error: func(error) {}} // most imports are missing
	pkg, _ := config.Check(folder, c.fset, files, info)
	pkg.MarkComplete()
	return pkg, info, files, nil
}

var byteNames = regexp.MustCompile(`(Bytes|Body|Result)$`)

// inWords writes a number as the page does: 29 days, 30 s, 120,000, 64 MiB, and 64 KB for what a DynamoDB item holds.
func inWords(name string, tv types.TypeAndValue) string {
	value := tv.Value
	if tv.Type.String() == "time.Duration" {
		n, _ := constant.Int64Val(value)
		return duration(time.Duration(n))
	}
	n, ok := constant.Int64Val(constant.ToInt(value))
	switch {
	case !ok:
		return value.String()
	case byteNames.MatchString(name) && n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case byteNames.MatchString(name) && n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func duration(d time.Duration) string {
	if d < time.Hour && d > time.Second && d%time.Minute != 0 {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	var parts []string
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / unit.size; n > 0 && (unit.name != "days" || d%unit.size == 0) {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
			d %= unit.size
		}
	}
	return strings.Join(parts, " ")
}
