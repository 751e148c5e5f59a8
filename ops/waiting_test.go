package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/ops"
)

// attributesOf is a client whose GetQueueAttributes calls before.
type attributesOf struct {
	ops.Client
	before func(ctx context.Context, url string) error
}

func (c attributesOf) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := c.before(ctx, *in.QueueUrl); err != nil {
		return nil, err
	}
	return c.Client.GetQueueAttributes(ctx, in, o...)
}

// A redrive, and a dry run, say how much waits in each queue that messages go to, before anything is sent there.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		bubble(t, setup{}, func(x *fixture) {
			other := x.create("other", x.redrive("jobs-dlq", 3))
			x.create("unused", x.redrive("jobs-dlq", 3))
			x.send(x.url, "w1", "w2", "w3")
			for i := range 25 {
				source := []string{"jobs", "other"}[i%2]
				x.sendWith(x.dlq, fmt.Sprint("m", i), map[string]string{
					sqsonce.AttrEventID: fmt.Sprint(i), sqsonce.AttrEventSource: "orders", sqsonce.AttrDeadLetterSource: arnPrefix + source,
				})
			}
			p := x.newProcess()
			d := x.openIn(p)
			before := p.requests("GetQueueAttributes")
			r := x.redriveAll(d, func(o *ops.RedriveOptions) { o.DryRun = dry })
			got := map[string]int{}
			for _, w := range r.Waiting {
				got[w.QueueURL] = w.Messages
			}
			if len(r.Waiting) != 2 || got[x.url] != 3 || got[other] != 0 || r.Waiting[0].Err != nil {
				t.Errorf("dry %t: %+v", dry, r.Waiting)
			}
			if n := p.requests("GetQueueAttributes") - before; n != 3 { // one is of the dead-letter queue
				t.Errorf("dry %t: %d reads of attributes", dry, n)
			}
		})
	}
}

// What waits need not be known: a call that is denied, or never ends, is in the report, and the redrive goes on.
func TestWaitingIsNotKnown(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, fail := range map[string]func(context.Context) error{"denied": func(context.Context) error { return errCard }, "hangs": hangs} {
		bubble(t, setup{}, func(x *fixture) {
			x.fill(25)
			d, err := ops.Open(context.Background(), attributesOf{x.newProcess().sqs, func(ctx context.Context, url string) error {
				if url == x.url {
					return fail(ctx)
				}
				return nil
			}}, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(x.admin).Key, x.store(x.admin) })
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			r := x.redriveAll(d)
			if took := time.Since(start); r.Count(ops.ActionRedriven) != 25 || took > 10*time.Second {
				t.Errorf("%s: %d redriven in %s", name, r.Count(ops.ActionRedriven), took)
			}
			if len(r.Waiting) != 1 || r.Waiting[0].Err == nil || !strings.Contains(r.Waiting[0].Err.Error(), "sqs:GetQueueAttributes of "+x.url) ||
				name == "denied" && !errors.Is(r.Waiting[0].Err, errCard) {
				t.Errorf("%s: %+v", name, r.Waiting)
			}
		})
	}
}
