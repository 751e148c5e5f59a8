package sqsonce_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logFolders are the folders of the packages that log.
var logFolders = []string{
	"internal/host", "internal/deadletter", "sqsworker", "lambda", "dedup", "dedup/dynamostore", "dedup/sqlstore", "dedup/redisstore",
	"dedup/memstore", "fifo", "fifo/outbox", "fifo/outbox/dynamooutbox", "s3payload", "emf", "otelsqs", ".",
}

// The table of docs/logs.md is what the code logs, and each key is in its vocabulary.
func TestLogs(t *testing.T) {
	t.Parallel()
	code := &logCode{}
	for _, folder := range logFolders {
		if err := code.read(folder, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(code.lines) < 80 {
		t.Errorf("%d lines, want at least 80: were they recognised?", len(code.lines))
	}
	for _, problem := range append(code.problems, logProblems(readText(t, "docs/logs.md"), code.lines)...) {
		t.Error(problem)
	}
}

// The check sees what is wrong with a page and with code.
func TestLogsSeesChanges(t *testing.T) {
	t.Parallel()
	const source = `package p
const keyQueue = "queue"
func (w *W) about(others ...any) []any {
	attrs := append([]any{"message_id", w.id}, others...)
	if w.group != "" { attrs = append(attrs, keyGroup, w.group) }
	return attrs
}
const keyGroup = "group"
func (w *W) f(ctx context.Context) {
	w.log.WarnContext(ctx, "p: it " + "failed", w.about(keyQueue, 1)...)
}
func (w *W) g(err error) { w.opts.Logger.Info("p: begun", append(host.ErrorAttrs(err), "key", 2)...) }
`
	const page = "| key | | |\n|---|---|---|\n| `message_id` |  |\n| `group` | |\n| `queue` | |\n| `error` | |\n| `stack` | |\n| `key` | |\n\n" +
		"| level | line | keys |\n|---|---|---|\n| [WARN](runbook.md#slow) | `p: it failed` | `group` `message_id` `queue` |\n| INFO | `p: begun` | `error` `key` `stack` |\n"
	for name, c := range map[string]struct {
		old, new string // in the source, else in the page
		want     string
	}{
		"same":           {"", "", ""},
		"a new key":      {`about(keyQueue, 1)`, `about("que", 1)`, "que is not in the vocabulary"},
		"another key":    {`about(keyQueue, 1)`, `about(keyQueue, 1, "error", 2)`, "p: it failed"},
		"another level":  {"WarnContext(ctx,", "ErrorContext(ctx,", "p: it failed"},
		"another text":   {"p: begun", "p: began", "p: began"},
		"no context":     {"WarnContext(ctx,", "Warn(", "has a context"},
		"a variable":     {`"p: begun"`, "text", "is no constant"},
		"a method value": {`w.opts.Logger.Info("p: begun"`, `_ = w.log.Error; w.opts.Logger.Info("p: begun"`, "is not called here"},
		"unknown attrs":  {"append(host.ErrorAttrs(err)", "append(others(err)", "others"},
		"no row":         {"| INFO | `p: begun` | `error` `key` `stack` |\n", "", "p: begun"},
		"a row too much": {"| INFO | `p: begun`", "| INFO | `p: ended` | |\n| INFO | `p: begun`", "p: ended"},
		"an old key":     {"| `group` | |\n", "| `group` | |\n| `old` | |\n", "old is in no line"},
	} {
		code, text := &logCode{}, page
		changed := strings.Replace(source, c.old, c.new, 1)
		if changed == source {
			text = strings.Replace(page, c.old, c.new, 1)
		}
		if c.old != "" && changed == source && text == page {
			t.Fatalf("%s changes nothing", name)
		}
		if err := code.read("p", map[string]string{"p.go": changed}); err != nil {
			t.Fatal(err)
		}
		found := strings.Join(append(code.problems, logProblems(text, code.lines)...), "\n")
		if c.want == "" && found != "" || !strings.Contains(found, c.want) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
}

// writtenLine is a line that code writes: its level, text and keys as in a row of the page.
type writtenLine struct{ level, text, keys string }

// logRow is a row of the page: level, the anchor in docs/runbook.md that it leads to, text, keys.
var logRow = regexp.MustCompile("(?m)^\\| \\[?(DEBUG|INFO|WARN|ERROR)(?:\\]\\(runbook\\.md#([a-z-]+)\\))? \\| `([^`]+)` \\| ([^|]*)\\|")

func logProblems(page string, lines []writtenLine) (problems []string) {
	rows, used := map[writtenLine]bool{}, map[string]bool{}
	for _, m := range logRow.FindAllStringSubmatch(page, -1) {
		rows[writtenLine{m[1], m[3], strings.TrimSpace(m[4])}] = true
	}
	vocabulary := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		vocabulary[m[1]] = true
	}
	written := map[writtenLine]bool{}
	for _, l := range lines {
		written[l] = true
		if !rows[l] {
			problems = append(problems, fmt.Sprintf("docs/logs.md has no row | %s | `%s` | %s |", l.level, l.text, l.keys))
		}
		for _, m := range inBackquotes.FindAllStringSubmatch(l.keys, -1) {
			if used[m[1]] = true; !vocabulary[m[1]] {
				problems = append(problems, fmt.Sprintf("%s: %s is not in the vocabulary of docs/logs.md", l.text, m[1]))
			}
		}
	}
	for row := range rows {
		if !written[row] {
			problems = append(problems, fmt.Sprintf("no code writes | %s | `%s` | %s |", row.level, row.text, row.keys))
		}
	}
	for key := range vocabulary {
		if !used[key] {
			problems = append(problems, key+" is in no line")
		}
	}
	return problems
}

// logCode is what the source of packages logs.
type logCode struct {
	lines    []writtenLine
	problems []string

	fset      *token.FileSet
	constants map[string]string        // of the package
	functions map[string]*ast.FuncDecl // of the package: by name
}

// read adds the lines of a package; files are its sources, nil: those of the folder.
func (c *logCode) read(folder string, sources map[string]string) (err error) {
	c.fset, c.constants, c.functions = token.NewFileSet(), map[string]string{}, map[string]*ast.FuncDecl{}
	var files []*ast.File
	if sources == nil {
		files, err = parseFolder(c.fset, folder)
	}
	for name, text := range sources {
		file, parseErr := parser.ParseFile(c.fset, name, text, parser.SkipObjectResolution)
		files, err = append(files, file), errors.Join(err, parseErr)
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) {
						if text, ok := constantText(n.Values[i]); ok {
							c.constants[name.Name] = text
						}
					}
				}
			case *ast.FuncDecl:
				c.functions[n.Name.Name] = n
			}
			return true
		})
	}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				c.readFunction(f, f.Type, f.Body)
			}
		}
	}
	return nil
}

// readFunction adds the lines of a function. Function literals in it that have a context of their own are functions themselves.
func (c *logCode) readFunction(outer *ast.FuncDecl, t *ast.FuncType, body *ast.BlockStmt) {
	called := map[*ast.SelectorExpr]bool{} // a call is seen before its function
	ast.Inspect(body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && hasContext(lit.Type) {
			c.readFunction(outer, lit.Type, lit.Body)
			return false
		}
		if f, ok := n.(*ast.SelectorExpr); ok && isLogMethod(f) && !called[f] {
			c.problems = append(c.problems, fmt.Sprintf("%s: %s is not called here", c.fset.Position(f.Pos()), types.ExprString(f)))
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLogMethod(f) {
			return true
		}
		called[f] = true
		level, withContext := strings.CutSuffix(f.Sel.Name, "Context")
		where, args := c.fset.Position(call.Pos()).String(), call.Args
		if withContext {
			args = args[1:]
		} else if hasContext(t) {
			c.problems = append(c.problems, where+": the function has a context, and the line is without it")
		}
		text, ok := c.text(args[0])
		if !ok {
			c.problems = append(c.problems, fmt.Sprintf("%s: the text %s is no constant", where, types.ExprString(args[0])))
		}
		keys, err := c.keys(outer, args[1:], call.Ellipsis.IsValid())
		if err != nil {
			c.problems = append(c.problems, where+": "+err.Error())
		}
		slices.Sort(keys)
		var quoted []string
		for _, key := range slices.Compact(keys) {
			quoted = append(quoted, "`"+key+"`")
		}
		c.lines = append(c.lines, writtenLine{strings.ToUpper(level), text, strings.Join(quoted, " ")})
		return true
	})
}

func isLogMethod(f *ast.SelectorExpr) bool {
	level := strings.TrimSuffix(f.Sel.Name, "Context")
	return isLogger.MatchString(types.ExprString(f.X)) && slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, level)
}

var isLogger = regexp.MustCompile(`(^|\.)(s?log|[lL]ogger)$`)

func hasContext(t *ast.FuncType) bool {
	return slices.ContainsFunc(t.Params.List, func(f *ast.Field) bool { return types.ExprString(f.Type) == "context.Context" && f.Names != nil })
}

func constantText(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func (c *logCode) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		left, ok := c.text(e.X)
		right, also := c.text(e.Y)
		return left + right, ok && also
	case *ast.Ident:
		text, ok := c.constants[e.Name]
		return text, ok
	}
	return constantText(e)
}

// keys returns the keys of a line's arguments. The last one may stand for several.
func (c *logCode) keys(in *ast.FuncDecl, args []ast.Expr, several bool) (keys []string, err error) {
	for i := 0; i < len(args); i++ {
		if several && i == len(args)-1 {
			more, err := c.attributes(in, args[i])
			return append(keys, more...), err
		}
		key, ok := c.text(args[i])
		if call, isCall := args[i].(*ast.CallExpr); isCall && strings.HasPrefix(types.ExprString(call.Fun), "slog.") {
			key, ok = c.text(call.Args[0])
		} else {
			i++ // its value
		}
		if !ok {
			return nil, fmt.Errorf("the key %s is no constant", types.ExprString(args[i-1]))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// attributes returns the keys of a []any: a literal, an append, a variable of the function, or what a function of the package
// returns, whose parameter "others" are further ones.
func (c *logCode) attributes(in *ast.FuncDecl, e ast.Expr) (keys []string, err error) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return c.keys(in, e.Elts, false)
	case *ast.Ident:
		if e.Name == "others" {
			return nil, nil // of the caller
		}
		found := false
		ast.Inspect(in, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && types.ExprString(a.Lhs[0]) == e.Name && err == nil {
				found = true
				if call, ok := a.Rhs[0].(*ast.CallExpr); ok && types.ExprString(call.Fun) == "append" && types.ExprString(call.Args[0]) == e.Name {
					var more []string
					more, err = c.keys(in, call.Args[1:], call.Ellipsis.IsValid())
					keys = append(keys, more...)
					return true
				}
				var more []string
				more, err = c.attributes(in, a.Rhs[0])
				keys = append(keys, more...)
			}
			return true
		})
		if !found {
			return nil, fmt.Errorf("the attributes %s are no variable of the function", e.Name)
		}
		return keys, err
	case *ast.CallExpr:
		name := types.ExprString(e.Fun)
		if name == "append" {
			first, err := c.attributes(in, e.Args[0])
			rest, restErr := c.keys(in, e.Args[1:], e.Ellipsis.IsValid())
			return append(first, rest...), errors.Join(err, restErr)
		}
		if name == "host.ErrorAttrs" {
			return []string{"error", "stack"}, nil
		}
		f := c.functions[name[strings.LastIndexByte(name, '.')+1:]]
		if f == nil {
			return nil, fmt.Errorf("%s is no function of the package", name)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 && err == nil {
				var more []string
				more, err = c.attributes(f, r.Results[0])
				keys = append(keys, more...)
			}
			return true
		})
		if last := f.Type.Params.List; err == nil && len(last) == 1 && len(last[0].Names) == 1 && last[0].Names[0].Name == "others" {
			var more []string
			more, err = c.keys(in, e.Args, e.Ellipsis.IsValid())
			keys = append(keys, more...)
		}
		return keys, err
	}
	return nil, fmt.Errorf("the attributes %s are not understood", types.ExprString(e))
}
