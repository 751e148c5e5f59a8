package sqstest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Backend says how to test a server.
type Backend struct {
	// New returns a client of the server. Its retries must be off (aws.NopRetryer): the suite looks at single answers.
	// With Virtual it is called once a case, inside the case's bubble, and must return a server of its own, which
	// t.Cleanup closes; else it is called once, and the cases share the server, each with queues of its own. Required.
	New func(t *testing.T) *sqs.Client
	// Virtual runs each case in a testing/synctest bubble, where time passes at once and exactly. The server must live in
	// the same process and use no sockets.
	Virtual bool
	// Advance sets the server's clock ahead. Without it, and without Virtual, the cases that let more than three seconds
	// pass are reported as skipped, and the others wait.
	Advance func(d time.Duration) error
	// Only, if not nil, are the cases to run.
	Only []string
	// Known are the cases that the server is known to fail, with the reason. One that passes, or that does not exist, is a
	// failure.
	Known map[string]string
}

// Cases returns the names of all cases, in the order they are run.
func Cases() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// Run runs every case as a subtest.
func Run(t *testing.T, b Backend) {
	t.Helper()
	for _, name := range b.unknown() {
		t.Errorf("no case is named %q", name)
	}
	all := b.selected()
	if b.Virtual {
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) {
				var err error
				synctest.Test(t, func(t *testing.T) { err = b.examine(t.Context(), b.New(t), c) })
				b.report(t, c, err)
			})
		}
		return
	}
	outcomes := b.runAll(t.Context(), b.New(t), all)
	for i, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if b.tooLong(c) {
				t.Skipf("%v pass on the server's clock, which cannot be set", c.passes)
			}
			b.report(t, c, <-outcomes[i])
		})
	}
}

// atOnce is how many cases run at the same time on a shared server. They wait more than they work, so that the limit of
// go test, the number of processors, would be far too low.
const atOnce = 24

// runAll starts the cases and returns a channel for the outcome of each. What disturbs others, as setting the clock does,
// comes first, one at a time.
func (b Backend) runAll(ctx context.Context, client *sqs.Client, all []testCase) []chan error {
	outcomes := make([]chan error, len(all))
	for i := range outcomes {
		outcomes[i] = make(chan error, 1)
	}
	disturbs := func(c testCase) bool { return c.alone || b.Advance != nil && c.passes > 0 }
	go func() {
		for i, c := range all {
			if disturbs(c) && !b.tooLong(c) {
				outcomes[i] <- b.examine(ctx, client, c)
			}
		}
		slots := make(chan struct{}, atOnce)
		for i, c := range all {
			if disturbs(c) || b.tooLong(c) {
				continue
			}
			slots <- struct{}{}
			go func() {
				outcomes[i] <- b.examine(ctx, client, c)
				<-slots
			}()
		}
	}()
	return outcomes
}

// patience is what a case may take by real waiting alone.
const patience = 3 * time.Second

func (b Backend) tooLong(c testCase) bool {
	return !b.Virtual && b.Advance == nil && c.passes > patience
}

func (b Backend) report(t *testing.T, c testCase, err error) {
	t.Helper()
	if err := b.verdict(c.name, err); err != nil {
		t.Error(err)
	}
	if reason, known := b.Known[c.name]; known && err != nil {
		t.Logf("fails, as is known (%s): %v", reason, err)
	}
}

// verdict says whether a case's outcome is a failure of the test.
func (b Backend) verdict(name string, err error) error {
	reason, known := b.Known[name]
	switch {
	case !known:
		return err
	case err == nil:
		return fmt.Errorf("passes, but is listed as known to fail: %s", reason)
	}
	return nil
}

// unknown returns the names in Known and Only that are no case's.
func (b Backend) unknown() []string {
	all := Cases()
	names := slices.Concat(slices.Sorted(maps.Keys(b.Known)), b.Only)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(all, name) })
}

func (b Backend) selected() []testCase {
	all := cases()
	if b.Only == nil {
		return all
	}
	return slices.DeleteFunc(all, func(c testCase) bool { return !slices.Contains(b.Only, c.name) })
}

// testCase is one rule of SQS.
type testCase struct {
	name string
	// passes is how much time the case lets pass on the server's clock, beyond what its long polls wait.
	passes time.Duration
	// alone is for a case that leaves a server which gets it wrong in a state that others would meet.
	alone bool
	run   func(x *exam)
}

func cases() []testCase {
	return slices.Concat(
		messageCases, attributeCases, contentCases, sizeCases, batchCases, batchErrorCases, visibilityCases, visibilityLimitCases, handleCases,
		deleteCases, pollCases, delayCases, queueCases, queueAttributeCases, purgeCases, retentionCases, redriveCases,
		redrivePolicyCases, moveCases, groupCases, groupLockCases, groupHandleCases, tokenCases, dedupCases, dedupScopeCases, attemptCases, fairCases, wireCases,
	)
}

// caseTimeout ends a case on a server that does not answer. In a bubble it costs nothing, and is longer than any case.
const caseTimeout = 100 * 24 * time.Hour

// examine runs a case and returns why it failed.
func (b Backend) examine(ctx context.Context, client *sqs.Client, c testCase) (err error) {
	timeout := caseTimeout
	if !b.Virtual {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := &exam{Backend: b, ctx: ctx, c: client}
	defer x.cleanUp()
	defer func() {
		if v := recover(); v != nil {
			f, ok := v.(failure)
			if !ok {
				panic(v)
			}
			err = f
		}
	}()
	c.run(x)
	if x.passed > c.passes {
		return fmt.Errorf("lets %v pass, declares %v", x.passed, c.passes)
	}
	return nil
}
