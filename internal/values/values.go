// Package values is for tests: all values of an enumeration, as its source has them. A test that goes through them fails for a new
// value until somebody has decided what it means there.
package values

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Outcomes returns every [sqsonce.OutcomeKind].
func Outcomes() (all []sqsonce.OutcomeKind) {
	for k := sqsonce.OutcomeKind(0); !strings.HasPrefix(k.String(), "outcome "); k++ {
		all = append(all, k)
	}
	return all
}

// Errors has an error of each outcome that a handler's error can have. The others are made by hosts.
var Errors = map[sqsonce.OutcomeKind]error{
	sqsonce.OutcomeDone:        nil,
	sqsonce.OutcomeSkipped:     fmt.Errorf("order: %w", sqsonce.Skip("void")),
	sqsonce.OutcomeFailed:      errBoom,
	sqsonce.OutcomeInProgress:  sqsonce.RetryAfter(time.Minute, sqsonce.ErrInProgress),
	sqsonce.OutcomeRejected:    sqsonce.Reject(errBoom),
	sqsonce.OutcomeLeaseLost:   sqsonce.ErrLeaseLost,
	sqsonce.OutcomeUnavailable: sqsonce.Unavailable(errBoom),
}

var errBoom = errors.New("boom")

// Of returns the texts of the constants of a type, from the source in a folder.
func Of[T ~string](t testing.TB, dir, typ string) (all []T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, T(text))
				}
			}
			return true
		})
	}
	if len(all) == 0 {
		t.Fatalf("no constant of type %s in %s", typ, dir)
	}
	return all
}
