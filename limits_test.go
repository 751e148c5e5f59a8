package sqsonce_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// limits are the numbers in the table about sqsonce in docs/limits.md: the row, and where the code has them. "Options.X" is the
// default that the package sets for the field.
var limits = []struct{ row, pkg, name string }{
	{"consumer's name", "dedup", "maxConsumer"},
	{"record's key (consumer, `#`, event's key)", "dedup", "maxKey"},
	{"record lease", "dedup", "Options.Lease"},
	{"record lease", "dedup", "leastLease"},
	{"wait after the end of another owner's lease", "dedup/dynamostore", "takeoverMargin"},
	{"call of the store", "dedup", "Options.CallTimeout"},
	{"retention of a record", "dedup", "Options.Retention"},
	{"retention of a record", "dedup", "leastRetention"},
	{"result of `dedup.Do`", "dedup", "Options.MaxResult"},
	{"result of `dedup.Do`", "dedup", "mostResult"},
	{"error text in a record", "dedup/sqlstore", "maxError"},
	{"error text in a record", "dedup/memstore", "maxError"},
	{"writes in a `dynamostore.Tx`", "dedup/dynamostore", "MaxWrites"},
	{"completed keys that a process remembers", "dedup", "Options.CacheSize"},
	{"completed keys that a process remembers", "dedup", "rememberFor"},
	{"visibility timeout in a worker", "sqsworker", "Options.Visibility"},
	{"visibility timeout in a worker", "sqsworker", "Options.MaxExtension"},
	{"messages in flight in a worker", "sqsworker", "maxInFlight"},
	{"messages in flight in a worker", "sqsworker", "Options.Bytes"},
	{"messages held in a worker, outside of these", "sqsworker", "maxHeld"},
	{"tries of a FIFO head in a worker", "sqsworker", "mostTries"},
	{"tries of a FIFO head in a worker", "sqsworker", "unknownTries"},
	{"delay after a failed try", "internal/host", "backoff[0]"},
	{"delay after a failed try", "internal/host", "backoff[1]"},
	{"delay after a failed try", "internal/host", "backoff[2]"},
	{"asked delay", "lambda", "minDelay"},
	{"asked delay", "lambda", "maxDelay"},
	{"asked delay", "sqsworker", "maxVisibility"},
	{"delay in a function while something is unavailable", "lambda", "firstUnavailable"},
	{"delay in a function while something is unavailable", "lambda", "maxUnavailable"},
	{"end of a function's handlers before its deadline", "lambda", "leastMargin"},
	{"end of a function's handlers before its deadline", "lambda", "mostMargin"},
	{"time of handlers after a stop of a worker", "sqsworker", "Options.StopTimeout"},
	{"time of handlers after a stop of a worker", "sqsworker", "Options.StopGrace"},
	{"time of handlers after a stop of a worker", "sqsworker", "Options.Wait"},
	{"event for the publisher", "fifo", "maxMessageBytes"},
	{"event for the publisher", "fifo", "maxAttributes"},
	{"events in a publisher without a result", "fifo", "Options.MaxMessages"},
	{"events in a publisher without a result", "fifo", "Options.MaxBytes"},
	{"attempts of one event", "fifo", "latestEnd"},
	{"attempts of one event", "fifo", "mostRepeats"},
	{"body in S3", "s3payload", "defaultMaxBytes"},
	{"body in S3", "s3payload", "maxAttributes"},
	{"`reject-reason`", "internal/deadletter", "maxReason"},
	{"attributes of a dead-letter copy", "internal/host", "MaxAttributes"},
	{"envelopes that `sqsonce.Unwrap` takes off", ".", "mostEnvelopes"},
}

// The numbers of docs/limits.md are those of the code, and no row of its table about sqsonce is left out.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, problem := range limitsProblems(readText(t, "docs/limits.md"), codeNumbers()) {
		t.Error(problem)
	}
}

// The check sees a number that is wrong in either place, a row without a check and a check without a row.
func TestLimitsSeesChanges(t *testing.T) {
	t.Parallel()
	page, numbers := readText(t, "docs/limits.md"), codeNumbers()
	for name, broken := range map[string]string{
		"default":   strings.Replace(page, "| 29 days by default", "| 28 days by default", 1),
		"limit":     strings.Replace(page, "at most 350 KB", "at most 1,350 KB", 1),
		"new row":   strings.Replace(page, "| call of the store |", "| patience | 7 s |\n| call of the store |", 1),
		"lost row":  strings.Replace(page, "| body in S3 |", "| large body |", 1),
		"same text": page,
	} {
		problems := limitsProblems(broken, numbers)
		if (broken == page) != (len(problems) == 0) {
			t.Errorf("%s: %q", name, problems)
		}
	}
	changed := maps.Clone(numbers)
	changed["sqsworker.maxInFlight"] = "130,000"
	if problems := limitsProblems(page, changed); len(problems) != 1 {
		t.Errorf("another limit in the code: %q", problems)
	}
}

func limitsProblems(page string, numbers map[string]string) (problems []string) {
	_, section, _ := strings.Cut(page, "\n## sqsonce\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows, checked := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if label := strings.TrimPrefix(cells[0], "| "); len(cells) == 2 && label != "what" {
			rows[label] = cells[1]
		}
	}
	for _, l := range limits {
		checked[l.row] = true
		text, ok := rows[l.row]
		if !ok {
			problems = append(problems, "no row "+l.row)
			continue
		}
		number, ok := numbers[l.pkg+"."+l.name]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s.%s is no constant", l.pkg, l.name))
		} else if !regexp.MustCompile(`(^|[^\d,.])` + regexp.QuoteMeta(number) + `($|[^\w])`).MatchString(text) {
			problems = append(problems, fmt.Sprintf("%s: %q has no %q, which %s.%s is", l.row, text, number, l.pkg, l.name))
		}
	}
	for row := range rows {
		if !checked[row] {
			problems = append(problems, "not compared with the code: "+row)
		}
	}
	return problems
}

// codeNumbers are the constants of the packages, and what setDefaults sets, in the words of the page.
var codeNumbers = sync.OnceValue(func() map[string]string {
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
			panic(err)
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
})

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
	files, err := parseFolder(c.fset, folder)
	if err != nil {
		return nil, nil, nil, err
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
