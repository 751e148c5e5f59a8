package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// checkDeadLetterQueue is Q3. SQS checks all of it when the redrive policy is set, and not when the dead-letter queue changes later.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
func checkDeadLetterQueue(ctx context.Context, e *examination) []Finding {
	r := report{id: "Q3"}
	arn, _, err := e.redrive(ctx)
	if errors.Is(err, errNoDLQ) {
		return nil
	} else if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	q, err := e.queue(ctx) // has answered: redrive is from it
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	own, err := host.ParseQueueARN(q.arn)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	switch {
	case own.Account != arn.Account || own.Region != arn.Region:
		r.fail(newDeadLetterQueue(q), "the dead-letter queue of %s is %s, in another account or Region, where SQS does not move messages",
			q.name, arn)
		return []Finding{r.finding("")}
	case host.IsFIFO(arn.Name) != q.fifo:
		r.fail(newDeadLetterQueue(q), "%s is a %s queue and its dead-letter queue %s a %s one: SQS does not move messages between them",
			q.name, kind(q.fifo), arn.Name, kind(host.IsFIFO(arn.Name)))
		return []Finding{r.finding("")}
	}
	d, err := e.deadLetterQueue(ctx)
	if isMissing(err) { // SQS says so of a queue of another account too, whose policy does not allow the call
		if foreign := e.foreign(ctx, "queue "+arn.Name, arn.Account); foreign != nil {
			err = foreign
		}
	}
	switch {
	case isMissing(err):
		r.fail(createQueue(arn.Name),
			"the dead-letter queue %s of %s does not exist: messages stay in %s until their retention ends, and are then lost", arn.Name, q.name,
			q.name)
	case err != nil:
		r.miss(err)
	default:
		checkAllowed(&r, q, d)
	}
	return []Finding{r.finding("%s receives the dead letters of %s", arn.Name, q.name)}
}

// redriveAllow is a RedriveAllowPolicy. A queue without one allows all queues of its account and Region.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
type redriveAllow struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns,omitempty"`
}

const (
	allowAll    = "allowAll"
	denyAll     = "denyAll"
	byQueue     = "byQueue"
	mostSources = 10 // of byQueue
)

func checkAllowed(r *report, q, d *queue) {
	text := d.get(sqstypes.QueueAttributeNameRedriveAllowPolicy)
	if text == "" {
		return
	}
	var p redriveAllow
	err := json.Unmarshal([]byte(text), &p)
	listed := slices.Contains(p.Sources, q.arn)
	allow := redriveAllow{Permission: byQueue, Sources: []string{q.arn}}
	if p.Permission == byQueue && err == nil {
		allow.Sources = append(p.Sources, q.arn)
	}
	if len(allow.Sources) > mostSources {
		allow = redriveAllow{Permission: allowAll}
	}
	fix := setAttribute(d, sqstypes.QueueAttributeNameRedriveAllowPolicy, asJSON(allow))
	switch {
	case err != nil:
		r.fail(fix, "the RedriveAllowPolicy of %s cannot be read: %v", d.name, err)
	case p.Permission == allowAll, p.Permission == byQueue && listed:
	case p.Permission == byQueue:
		r.fail(fix, "the RedriveAllowPolicy of %s names %d queues, and not %s", d.name, len(p.Sources), q.name)
	case p.Permission == denyAll:
		r.fail(fix, "the RedriveAllowPolicy of %s is denyAll: it accepts no dead letters", d.name)
	default:
		r.fail(fix, "the RedriveAllowPolicy of %s has the redrivePermission %.40q, which SQS does not have", d.name, p.Permission)
	}
}

const (
	longRetention = 14 * 24 * time.Hour // the longest that SQS has
	soon          = 48 * time.Hour
)

// checkDeadLetterRetention is Q4.
func checkDeadLetterRetention(ctx context.Context, e *examination) []Finding {
	r := report{id: "Q4"}
	d, err := e.deadLetterQueue(ctx)
	if errors.Is(err, errNoDLQ) {
		return nil
	} else if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	q, err := e.queue(ctx)
	if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	retention, err := d.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	own, ownErr := q.seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	if err = errors.Join(err, ownErr); err != nil {
		return []Finding{unseen(r.id, err)}
	}
	fix := setAttribute(d, sqstypes.QueueAttributeNameMessageRetentionPeriod, fmt.Sprint(int64(longRetention.Seconds())))
	switch {
	case !q.fifo && retention < own:
		r.fail(fix, "%s keeps messages for %s, and %s for %s, both counted from the send: a message that waits too long in %s is lost when SQS moves it",
			d.name, span(retention), q.name, span(own), q.name)
	case !q.fifo && retention < longRetention:
		r.warn(fix, "%s keeps messages for %s, counted from when they were sent to %s, which may keep them for %s before", d.name,
			span(retention), q.name, span(own))
	case retention < longRetention:
		r.warn(fix, "%s keeps messages for %s, and could for %s", d.name, span(retention), span(longRetention))
	}
	e.checkOldest(ctx, &r, q, d, retention, own)
	return []Finding{r.finding("%s keeps messages for %s", d.name, span(retention))}
}

// checkOldest looks when the oldest dead letter is lost. CloudWatch counts its age from the move. On a standard queue SQS counts its
// retention from the send, so that its time in the source queue comes off: up to that queue's retention. What came from a queue with a
// longer one, and is in this dead-letter queue too, may have less.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
func (e *examination) checkOldest(ctx context.Context, r *report, q, d *queue, retention, own time.Duration) {
	n, err := d.messages()
	if err != nil || n == 0 {
		r.miss(err)
		return
	}
	if foreign := e.foreign(ctx, "metrics of "+d.name, d.account()); foreign != nil {
		r.miss(foreign) // what CloudWatch has is of another queue with this name
		return
	}
	age, err := e.oldest(ctx, d)
	if err != nil {
		r.miss(err)
		return
	}
	left, since := retention-age, ""
	if !d.fifo {
		left, since = left-own, fmt.Sprintf(", and may have waited for %s in %s before", span(own), q.name)
	}
	if left >= soon {
		return
	}
	when := "in " + span(left.Truncate(time.Minute))
	if left <= 0 {
		when = "at any time"
	}
	fix := "redrive, export or delete its messages: " + e.Look
	if retention < longRetention { // a longer retention is also that of messages that are in the queue
		fix = setAttribute(d, sqstypes.QueueAttributeNameMessageRetentionPeriod, fmt.Sprint(int64(longRetention.Seconds())))
	}
	r.warn(fix, "%d messages in %s: the oldest may be lost %s; it was moved %s ago%s", n, d.name, when, span(age.Truncate(time.Minute)), since)
}

// oldest is the age of the oldest message since it was moved. CloudWatch has a value a minute, some minutes late.
func (e *examination) oldest(ctx context.Context, d *queue) (time.Duration, error) {
	if e.CloudWatch == nil {
		return 0, errNoClient
	}
	now := time.Now()
	out, err := e.CloudWatch.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(now.Add(-time.Hour)), EndTime: &now, ScanBy: cwtypes.ScanByTimestampDescending,
		MetricDataQueries: []cwtypes.MetricDataQuery{{Id: aws.String("age"), MetricStat: &cwtypes.MetricStat{
			Stat: aws.String("Maximum"), Period: aws.Int32(60), Metric: &cwtypes.Metric{
				Namespace: aws.String(namespace), MetricName: aws.String(metricAge),
				Dimensions: []cwtypes.Dimension{{Name: aws.String(dimension), Value: &d.name}},
			},
		}}},
	})
	if err != nil {
		return 0, err
	}
	var newest time.Time
	age := math.NaN()
	for _, result := range out.MetricDataResults {
		for i, at := range result.Timestamps {
			if i < len(result.Values) && at.After(newest) {
				newest, age = at, result.Values[i]
			}
		}
	}
	if !(age >= 0 && age < 1e9) { // also of NaN
		return 0, fmt.Errorf("CloudWatch has no %s of %s of the last hour", metricAge, d.name)
	}
	return time.Duration(age*float64(time.Second)) + max(now.Sub(newest), 0), nil // it has grown since
}

// checkDeadLetterReaders is Q6: who takes messages out of the dead-letter queue.
func checkDeadLetterReaders(ctx context.Context, e *examination) []Finding {
	r := report{id: "Q6"}
	arn, _, err := e.redrive(ctx)
	if errors.Is(err, errNoDLQ) {
		return nil
	} else if err != nil {
		return []Finding{unseen(r.id, err)}
	}
	d, err := e.deadLetterQueue(ctx)
	r.miss(err)
	if d != nil && d.get(sqstypes.QueueAttributeNameRedrivePolicy) != "" {
		r.fail(setAttribute(d, sqstypes.QueueAttributeNameRedrivePolicy, ""),
			"%s has its own redrive policy: each look at its messages brings them closer to that policy's queue", d.name)
	}
	mappings, err := e.deadRead.get(ctx, func(ctx context.Context) ([]mappingConfiguration, error) { return e.mappingsOf(ctx, arn.String()) })
	r.miss(err)
	for _, m := range mappings {
		if s := aws.ToString(m.State); s != "Disabled" && s != "Disabling" && s != "Deleting" {
			r.fail(awsCommand("lambda", "update-event-source-mapping", "--uuid", aws.ToString(m.UUID), "--no-enabled"),
				"mapping %s (%s) reads %s and hands its messages to %s", aws.ToString(m.UUID), s, arn.Name, aws.ToString(m.FunctionArn))
		}
	}
	e.checkMoveTask(ctx, &r, arn)
	return []Finding{r.finding("only people remove messages from %s", arn.Name)}
}

// checkMoveTask looks at the newest task: a queue has one at a time.
func (e *examination) checkMoveTask(ctx context.Context, r *report, arn host.QueueARN) {
	if e.SQS == nil {
		r.miss(errNoClient)
		return
	}
	out, err := e.SQS.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn.String()), MaxResults: aws.Int32(1)})
	if err != nil {
		r.miss(err)
		return
	}
	for _, task := range out.Results {
		if aws.ToString(task.Status) == "RUNNING" {
			r.warn(awsCommand("sqs", "cancel-message-move-task", "--task-handle", aws.ToString(task.TaskHandle)),
				"a message move task moves messages out of %s, %d of %d so far, and gives them new message IDs: wait until it ends, or cancel it",
				arn.Name, task.ApproximateNumberOfMessagesMoved, aws.ToInt64(task.ApproximateNumberOfMessagesToMove))
		}
	}
}
