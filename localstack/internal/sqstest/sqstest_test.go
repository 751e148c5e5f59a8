package sqstest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestCaseNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 120 {
		t.Errorf("%d cases, want at least 120", len(seen))
	}
}

// Every case names its source: each function that takes an exam, or returns one that does, has a comment.
func TestEveryCaseNamesItsSource(t *testing.T) {
	t.Parallel()
	files := must.Get(filepath.Glob("*.go"))(t)
	checked := 0
	for _, file := range files {
		f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !isCase(fn.Type) {
				continue
			}
			checked++
			if len(strings.TrimSpace(fn.Doc.Text())) < len("As above.") {
				t.Errorf("%s: %s has no comment that names its source", file, fn.Name)
			}
		}
	}
	// The factories make several cases each.
	if checked < len(cases())-10 {
		t.Errorf("%d functions checked for %d cases", checked, len(cases()))
	}
}

// isCase: func(x *exam), or a function that returns func(*exam).
func isCase(f *ast.FuncType) bool {
	if f.Results != nil && len(f.Results.List) == 1 {
		if made, ok := f.Results.List[0].Type.(*ast.FuncType); ok {
			return isCase(made)
		}
		return false
	}
	if f.Results != nil || len(f.Params.List) != 1 {
		return false
	}
	p, ok := f.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := p.X.(*ast.Ident)
	return ok && name.Name == "exam"
}

func TestPassesMoreThanItDeclares(t *testing.T) {
	t.Parallel()
	if err := examine(t, func(*memsqs.Options) {}, testCase{name: "x", passes: time.Second, run: func(x *exam) { x.pass(2 * time.Second) }}); err == nil {
		t.Error("got nil, want an error")
	}
}

// A server that breaks a rule fails the case of the rule. The known failures of emulators show this for most cases; this test
// shows it for cases that no emulator fails.
func TestDefectsAreFound(t *testing.T) {
	t.Parallel()
	rules := func(r ...fault.Rule) func(*memsqs.Options) {
		return func(o *memsqs.Options) { o.Faults = fault.Plan{Rules: r} }
	}
	for name, defect := range map[string]func(*memsqs.Options){
		"message/hidden while in flight":               rules(fault.Rule{Op: "ReceiveMessage", Prob: 1, Do: fault.ExpireEarly}),
		"message/many receivers get each message once": func(o *memsqs.Options) { o.Duplicates = 0.2 },
		"message/round trip":                           rules(fault.Rule{Op: "SendMessage", Prob: 1, Do: fault.LoseReply}),
		"delete/ends it":                               rules(fault.Rule{Op: "DeleteMessage", Prob: 1, Do: fault.Error}),
		"delete/one of several":                        rules(fault.Rule{Op: "ReceiveMessage", Prob: 1, Do: fault.Duplicate}),
		"batch/results by entry":                       rules(fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.DropEntries, Entries: []int{0}}),
		"batch/ten sent, received and deleted":         rules(fault.Rule{Op: "DeleteMessageBatch", Prob: 1, Do: fault.FailEntries, Entries: []int{9}}),
		"poll/returns at once what is there":           rules(fault.Rule{Op: "ReceiveMessage", Prob: 1, Do: fault.Delay, Delay: time.Second}),
		"group lock/one at a time":                     rules(fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.ExpireEarly}),
		"group lock/shows at most ten while held":      rules(fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.ExpireEarly}),
		"group/order of sending":                       rules(fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate}),
		"redrive/moved instead of received":            rules(fault.Rule{Op: "ReceiveMessage", Nth: 2, Do: fault.Duplicate}),
		"queue/unknown":                                rules(fault.Rule{Op: "DeleteQueue", Prob: 1, Do: fault.Error}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases() {
				if c.name == name {
					if err := examine(t, func(*memsqs.Options) {}, c); err != nil {
						t.Errorf("without the defect: got %v, want nil", err)
					}
					if err := examine(t, defect, c); err == nil {
						t.Error("with the defect: got nil, want an error")
					}
					return
				}
			}
			t.Error("no case has this name")
		})
	}
}

// examine runs a case on a server with options, and returns why it failed.
func examine(t *testing.T, optFn func(*memsqs.Options), c testCase) error {
	return Backend{Virtual: true}.suiteCase(c, func(t *testing.T) *sqs.Client {
		srv := memsqs.New(optFn)
		t.Cleanup(srv.Close)
		return sqs.New(sqs.Options{
			Region: "us-east-1", BaseEndpoint: ptr("http://sqs.memory"), HTTPClient: &http.Client{Transport: srv}, Retryer: aws.NopRetryer{},
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			}),
		})
	}).Examine(t, true)
}
