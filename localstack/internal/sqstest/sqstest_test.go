package sqstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
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

// Every case names its source, in a comment that ends on the line before it.
func TestEveryCaseNamesItsSource(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, file := range must.Get(filepath.Glob("*.go"))(t) {
		before := ""
		for line := range strings.Lines(string(must.Get(os.ReadFile(file))(t))) {
			if name, is := strings.CutPrefix(line, "\t{name: "); is {
				checked++
				if !strings.HasPrefix(before, "\t// ") {
					t.Errorf("%s: no comment names the source of %s", file, name)
				}
			}
			before = line
		}
	}
	if checked != len(cases()) {
		t.Errorf("%d rows checked for %d cases", checked, len(cases()))
	}
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
		return testaws.SQS(srv, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	}).Examine(t, true)
}
