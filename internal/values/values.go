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

// Outcome is what each package makes of a [sqsonce.OutcomeKind].
type Outcome struct {
	Name string
	// Err is an error with that outcome. ByHosts has the tests of an outcome that no error has, because hosts make it.
	Err     error
	ByHosts string

	// What both hosts do after a handler returned Err.
	Queued  bool   // the message is still in the queue
	Dead    bool   // a copy is in the dead-letter queue
	Delayed bool   // its visibility timeout was changed
	Failed  bool   // the function reports it as failed
	Told    bool   // Options.OnError is called
	Counted string // the fields of the worker's Stats that grow

	SpanFailed bool // the handler's span is an error, with an error.type

	// What a sqlstore.Processor makes of an event whose handler returned Err. Wait is the least time until its next attempt.
	Event Event
}

// Event is the state of a deferred event.
type Event struct {
	Done, Parked bool
	Attempts     int
	Wait         time.Duration
	Counted      string // the fields of ProcessorStats that grow
}

// Outcomes has a row for each [sqsonce.OutcomeKind].
var Outcomes = map[sqsonce.OutcomeKind]Outcome{
	sqsonce.OutcomeDone: {Name: "done", Counted: "Done", Event: Event{Done: true, Attempts: 1, Counted: "Done"}},
	sqsonce.OutcomeSkipped: {
		Name: "skipped", Err: fmt.Errorf("order: %w", sqsonce.Skip("void")),
		Counted: "Skipped", Event: Event{Done: true, Attempts: 1, Counted: "Skipped"},
	},
	sqsonce.OutcomeFailed: {
		Name: "failed", Err: errBoom,
		Queued: true, Delayed: true, Failed: true, Told: true, Counted: "Failed", SpanFailed: true, Event: Event{Attempts: 1, Counted: "Failed"},
	},
	sqsonce.OutcomeInProgress: {
		Name: "in_progress", Err: sqsonce.RetryAfter(time.Minute, sqsonce.ErrInProgress),
		Queued: true, Delayed: true, Failed: true, Event: Event{Attempts: 1, Counted: "Failed"},
	},
	sqsonce.OutcomeRejected: {
		Name: "rejected", Err: sqsonce.Reject(errBoom),
		Dead: true, Told: true, Counted: "Failed Rejected", SpanFailed: true, Event: Event{Parked: true, Attempts: 1, Counted: "Parked"},
	},
	sqsonce.OutcomeLeaseLost: {
		Name: "lease_lost", Err: sqsonce.ErrLeaseLost,
		Queued: true, Failed: true, Counted: "LeasesLost", SpanFailed: true, Event: Event{Attempts: 1, Counted: "Failed"},
	},
	sqsonce.OutcomeUnavailable: {
		Name: "unavailable", Err: sqsonce.Unavailable(errBoom),
		Queued: true, Delayed: true, Failed: true, Told: true, Counted: "Unavailable", SpanFailed: true, Event: Event{Wait: 10 * time.Second, Counted: "Failed"},
	},
	sqsonce.OutcomeShutdown:   {Name: "shutdown", ByHosts: "lambda.TestHooks, sqsworker.TestHooks"},
	sqsonce.OutcomeAbandoned:  {Name: "abandoned", ByHosts: "lambda.TestAbandoned", SpanFailed: true},
	sqsonce.OutcomeNotStarted: {Name: "not_started", ByHosts: "lambda.TestFIFOFailureEndsItsGroupOnly"},
	sqsonce.OutcomePostponed: {
		Name: "postponed", Err: sqsonce.Postpone(time.Minute, errBoom),
		Queued: true, Delayed: true, Failed: true, Counted: "Postponed", Event: Event{Wait: time.Minute, Counted: "Postponed"},
	},
}

// EachOutcome calls f for each [sqsonce.OutcomeKind]. It fails the test for one that has no row in Outcomes.
func EachOutcome(t testing.TB, f func(k sqsonce.OutcomeKind, o Outcome)) {
	t.Helper()
	for k := sqsonce.OutcomeKind(0); !strings.HasPrefix(k.String(), "outcome "); k++ {
		o, ok := Outcomes[k]
		if !ok || k.String() != o.Name || o.ByHosts == "" && sqsonce.OutcomeOf(o.Err).Kind != k {
			t.Errorf("outcome %s: decide in values.Outcomes what each package makes of it", k)
			continue
		}
		f(k, o)
	}
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
