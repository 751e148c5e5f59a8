package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// mostVisibility is the longest visibility timeout.
const mostVisibility = 12 * time.Hour

// checkVisibility is Q7: by the function's timeout if there is one, and by the longest handler if that is known.
func checkVisibility(ctx context.Context, e *examination) []Finding {
	if e.Function == "" && e.LongestHandler <= 0 {
		return nil
	}
	r := report{id: "Q7"}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	visibility, err := q.seconds(sqstypes.QueueAttributeNameVisibilityTimeout)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	most := 0
	if e.LongestHandler > 0 {
		var err error
		if _, most, err = e.redrive(ctx); err != nil && !errors.Is(err, errNoDLQ) {
			r.miss(err)
		}
	}
	timeout, window := e.invocation(ctx, &r)
	want := e.leastVisibility(timeout, window, most)
	fix := setAttribute(q, sqstypes.QueueAttributeNameVisibilityTimeout, fmt.Sprint(int64(min(want, mostVisibility).Seconds())))
	switch {
	case visibility < timeout:
		r.fail(fix, "%s hides a message for %s, less than the %s that %s may take: it is delivered again while it is handled", q.name,
			span(visibility), span(timeout), e.Function)
	case timeout > 0 && visibility < 6*timeout+window:
		r.warn(fix,
			"%s hides a message for %s, less than 6 x the %s of %s + a batching window of %s: a throttled batch returns before Lambda can invoke it again",
			q.name, span(visibility), span(timeout), e.Function, span(window))
	}
	if total := visibility * time.Duration(most); most > 0 && total <= e.LongestHandler {
		if want > mostVisibility {
			fix = fmt.Sprintf("raise maxReceiveCount: %d receives of the longest visibility timeout, %s, are too short", most, span(mostVisibility))
		}
		r.warn(fix, "all %d receives of a message of %s together take %s, and a handler up to %s: a copy of a message whose event is being handled reaches the dead-letter queue",
			most, q.name, span(total), span(e.LongestHandler))
	}
	text := fmt.Sprintf("%s hides a message for %s", q.name, span(visibility))
	if timeout > 0 {
		text += fmt.Sprintf(", at least 6 x the %s of %s + a batching window of %s", span(timeout), e.Function, span(window))
	}
	if most > 0 {
		text += fmt.Sprintf(". %d receives outlast a handler of %s", most, span(e.LongestHandler))
	}
	return []Finding{r.finding("%s", text)}
}

// invocation is how long an invocation of the function may take, and how long Lambda collects messages before it. Both
// are 0 without a function.
func (e *examination) invocation(ctx context.Context, r *report) (timeout, window time.Duration) {
	if e.Function == "" {
		return 0, 0
	}
	c, err := e.configuration(ctx)
	switch {
	case err != nil:
		r.miss(err)
	case aws.ToInt32(c.Timeout) <= 0:
		r.miss(fmt.Errorf("lambda says that %s has the timeout %d s", e.Function, aws.ToInt32(c.Timeout)))
	default:
		timeout = time.Duration(*c.Timeout) * time.Second
	}
	m, err := e.mapping(ctx)
	r.miss(err)
	if m != nil {
		window = time.Duration(aws.ToInt32(m.MaximumBatchingWindowInSeconds)) * time.Second
	}
	return timeout, window
}

// leastVisibility is the visibility timeout that Q7 asks for. most is maxReceiveCount, where the longest handler
// counts.
//
// Lambda refuses a mapping whose function's timeout is longer, and recommends six times the timeout, so that it can try
// again where the function is throttled; the messages also wait for the batching window.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
func (e *examination) leastVisibility(timeout, window time.Duration, most int) time.Duration {
	least := max(6*timeout+window, time.Second)
	if most > 0 {
		least = max(least, e.LongestHandler.Truncate(time.Second)/time.Duration(most)+time.Second)
	}
	return least
}

// checkCrashes is Q9: a message that crashes its function each time must reach the dead-letter queue before its
// retention ends. A worker hides messages for a time of its own.
func checkCrashes(ctx context.Context, e *examination) []Finding {
	if e.Function == "" {
		return nil
	}
	r := report{id: "Q9"}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	_, most, err := e.redrive(ctx)
	if errors.Is(err, errNoDLQ) || err == nil && most == 0 {
		return nil // Q2 says so
	}
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	visibility, err := q.seconds(sqstypes.QueueAttributeNameVisibilityTimeout)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	retention, err := q.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	total := visibility * time.Duration(most)
	if total < retention {
		return []Finding{r.finding("%d crashes hide a message of %s for %s, less than its retention of %s", most, q.name, span(total), span(retention))}
	}
	fix := fmt.Sprintf("raise the retention of %s above %s and that of its dead-letter queue with it, or lower VisibilityTimeout or maxReceiveCount", q.name, span(total))
	timeout, window := e.invocation(ctx, &r)
	if least := e.leastVisibility(timeout, window, most); timeout > 0 && least*time.Duration(most) < retention {
		fix = setAttribute(q, sqstypes.QueueAttributeNameVisibilityTimeout, fmt.Sprint(int64(least.Seconds())))
	}
	r.fail(fix, "%d crashes hide a message of %s for %s, and its retention is %s: SQS deletes it before it reaches the dead-letter queue",
		most, q.name, span(total), span(retention))
	return []Finding{r.finding("")}
}
