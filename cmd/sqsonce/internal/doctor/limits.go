package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

const (
	// fewLimitedReceives is the least where messages wait for a limit: up to three receives for the wait, and the three that a host
	// keeps for the run. Protocol, 18.4.
	fewLimitedReceives = 6
	// quotaInFlight is SQS's quota of a queue, of both kinds.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-fifo.html
	quotaInFlight = 120_000
	// mostInFlight leaves a sixth of it to messages that no worker has: of a crash, of retries with their backoff, of an operator's look.
	mostInFlight = 100_000

	limitsPage = "docs/tenants.md"
)

// Names of statusreport.Stats, and of a worker's options.
const (
	noGroup     = "no_group"
	maxInFlight = "max_in_flight"
	maxHeld     = "max_held"
	delayed     = "delayed"
)

// lookAtLimits is W4.
func lookAtLimits(ctx context.Context, e *examination, r *report, workers []fleet.Worker) {
	var groups, limited, open symptoms
	inFlight := map[string]float64{} // by queue
	for _, w := range workers {
		if w.Err != nil {
			r.miss(fmt.Errorf("%s: %w", w.URL, w.Err))
			continue
		}
		here := 0 // workers of the queue that is examined
		for _, one := range w.Report.Workers {
			for _, name := range []string{maxInFlight, maxHeld} {
				inFlight[one.Queue] += r.stat(one.Options, name, w.URL)
			}
			inFlight[one.Queue] += one.Options[delayed]
			if e.QueueURL != "" && sameQueue(one, e.QueueURL) {
				here++
			}
		}
		for _, rule := range w.Report.Limits {
			if n := r.stat(rule.Stats, noGroup, w.URL); n > 0 {
				groups.add("%s, rule %s (%.0f messages)", w.URL, rule.Name, n)
			}
		}
		switch {
		case len(w.Report.Limits) == 0 || here == 0:
		case here == len(w.Report.Workers):
			limited.add("%s", w.URL)
		default: // a report doesn't say which of its queues a rule is for
			open.add("%s", w.URL)
		}
	}
	if len(groups) > 0 {
		r.warn("send each message with its MessageGroupId, or set limit.Rule.Key: "+limitsPage,
			"a rule limits by message group, and messages without one ran without a limit: %s", groups)
	}
	for _, queue := range slices.Sorted(maps.Keys(inFlight)) {
		if n := inFlight[queue]; n > mostInFlight {
			r.warn("lower MaxInFlight, MaxHeld or Delayed, or run fewer workers: docs/limits.md, Numbers that must fit",
				"MaxInFlight + MaxHeld + Delayed of the workers of %s are %.0f together, more than %d: SQS stops delivering at %d messages in flight, and those of crashed workers and of retries count too", queue, n, mostInFlight, quotaInFlight)
		}
	}
	if len(limited)+len(open) > 0 {
		e.lookAtLimitedReceives(ctx, r, limited, open)
	}
	if len(workers) == 0 {
		r.miss(errNoProcess)
	}
}

// sameQueue reports whether a worker is of the queue at that URL, which may have another host there. Without an account its name
// decides.
func sameQueue(w statusreport.Worker, queueURL string) bool {
	one, ok := host.ARNOfURL(w.URL)
	other, known := host.ARNOfURL(queueURL)
	if ok && known {
		return one == other
	}
	return w.Queue == host.QueueName(queueURL)
}

// lookAtLimitedReceives looks at maxReceiveCount, if the consumer has a limit. Of processes that are open it is not known whether theirs
// is for the queue.
func (e *examination) lookAtLimitedReceives(ctx context.Context, r *report, limited, open symptoms) {
	q, err := e.queue(ctx)
	if err != nil {
		r.miss(err)
		return
	}
	arn, most, err := e.redrive(ctx)
	switch {
	case errors.Is(err, errNoDLQ) || err == nil && (most == 0 || most >= fewLimitedReceives): // Q2
	case err != nil:
		r.miss(err)
	case len(limited) > 0:
		r.warn(setRedrive(q, arn, fewLimitedReceives), "%s has maxReceiveCount %d, less than %d, and its messages wait for a limit (%s), which costs receives: a crash or a failed run may send them to %s",
			q.name, most, fewLimitedReceives, limited, arn.Name)
	default:
		r.miss(fmt.Errorf("%s has maxReceiveCount %d, which is too few for a limit: the workers of several queues in %s don't say which queue their rules limit", q.name, most, open))
	}
}

// checkFunctionLimits is L7. It applies where Deployment.Limits says that the function has a limiter: AWS doesn't know that.
func checkFunctionLimits(ctx context.Context, e *examination, m *mappingConfiguration) Finding {
	r := report{id: "L7"}
	if e.Limits == LimitsProcess {
		at := "an unknown number of invocations"
		if n, err := e.atOnce(ctx, m); err != nil {
			r.miss(err)
		} else if n > 0 {
			at = fmt.Sprintf("up to %d invocations", n)
		}
		r.warn("give the rules a Counter: "+limitsPage+", In a function",
			"each process of %s counts for itself, so that the limit is multiplied by %s at a time", unqualified(e.Function), at)
	}
	if e.NoClient {
		e.lookAtClientlessLimits(ctx, &r)
	}
	e.lookAtLimitedReceives(ctx, &r, symptoms{"function " + unqualified(e.Function)}, nil)
	return r.finding("the limits of %s hold for all its processes, and its messages have enough receives", unqualified(e.Function))
}

// lookAtClientlessLimits warns: the function can't hide a message until its turn, and doesn't know which receive is the last one.
// Protocol, 18.8.
func (e *examination) lookAtClientlessLimits(ctx context.Context, r *report) {
	q, err := e.queue(ctx)
	if err != nil {
		r.miss(err)
		return
	}
	hides, after := "its visibility timeout", ""
	if d, err := q.seconds(sqstypes.QueueAttributeNameVisibilityTimeout); err != nil {
		r.miss(err)
	} else {
		hides += ", " + span(d)
	}
	if arn, _, err := e.redrive(ctx); err == nil {
		after = ", and SQS moves one that still waits at its last receive to " + arn.Name
	} else if !errors.Is(err, errNoDLQ) {
		r.miss(err)
	}
	r.warn("use lambda.Start without lambda.NoClient, or set lambda.Options.Client, and allow sqs:ChangeMessageVisibility: docs/lambda.md, Permissions",
		"%s has no client, so %s hides each message that waits for a limit for %s, and not until its turn%s", unqualified(e.Function), q.name, hides, after)
}

// atOnce is how many invocations of the function there are at most at a time; 0: that is not bounded.
func (e *examination) atOnce(ctx context.Context, m *mappingConfiguration) (int32, error) {
	if s := m.ScalingConfig; s != nil && aws.ToInt32(s.MaximumConcurrency) > 0 {
		return *s.MaximumConcurrency, nil
	}
	n, _, err := e.reserved(ctx)
	return n, err
}
