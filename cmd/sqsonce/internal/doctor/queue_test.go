package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
)

// lie changes an attribute in what SQS says of a queue: what its own rules keep from being so.
func lie(queue, attribute, value string) func(*account) {
	return func(a *account) {
		alter(a.sqs, func(out *sqs.GetQueueAttributesOutput) {
			if out.Attributes["QueueArn"] == queueARN(queue) {
				out.Attributes[attribute] = value
			}
		})
	}
}

func truth(a *account) { clear(a.sqs.alters) }

func with(queue, attribute, value string) func(*account) {
	return func(a *account) { a.setQueue(queue, map[string]string{attribute: value}) }
}

func all(do ...func(*account)) func(*account) {
	return func(a *account) {
		for _, d := range do {
			d(a)
		}
	}
}

func longest(d time.Duration) func(*account) {
	return func(a *account) { a.deployment.LongestHandler = d }
}

const dlqARN = "arn:aws:sqs:us-east-1:000000000000:orders-dlq"

var queueDefects = []defect{
	{
		name: "missing", id: "Q1", verdict: Fail, text: "queue order does not exist at", words: "AWS_REGION",
		spoil: func(a *account) { a.deployment.QueueURL = a.deployment.QueueURL[:len(a.deployment.QueueURL)-1] },
		also:  []string{"Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q9", "L1", "L2", "L3", "L4", "L5", "L6", "A1"},
	},
	{
		name: "FIFO by another name", id: "Q1", verdict: Fail, text: `queue orders has the attribute FifoQueue="true"`, words: "ends in .fifo",
		spoil: lie("orders", "FifoQueue", "true"),
	},
	{
		name: "standard by another name", id: "Q1", verdict: Fail, text: `queue orders.fifo has the attribute FifoQueue=""`, fifo: true,
		words: "ends in .fifo",
		spoil: lie("orders.fifo", "FifoQueue", ""),
	},

	{name: "none", id: "Q2", verdict: Fail, text: "queue orders has no redrive policy", spoil: with("orders", "RedrivePolicy", "")},
	{name: "none", id: "Q2", verdict: Fail, text: "queue orders.fifo has no redrive policy", fifo: true, spoil: with("orders.fifo",
		"RedrivePolicy", "")},
	{
		name: "no JSON", id: "Q2", verdict: Fail, text: "the redrive policy of orders cannot be read", spoil: lie("orders", "RedrivePolicy",
			`{"a`),
		also: []string{"Q3", "Q4", "Q5", "Q6", "Q7", "Q9", "A1"}, before: truth,
	},
	{
		name: "no ARN", id: "Q2", verdict: Fail, text: `"orders-dlq" is not a queue's ARN`, before: truth,
		spoil: lie("orders", "RedrivePolicy", `{"deadLetterTargetArn":"orders-dlq","maxReceiveCount":5}`), also: []string{"Q3", "Q4", "Q5",
			"Q6", "Q7", "Q9", "A1"},
	},
	{
		name: "no maxReceiveCount", id: "Q2", verdict: Fail, text: "no maxReceiveCount that can be read", before: truth,
		spoil: lie("orders", "RedrivePolicy", `{"deadLetterTargetArn":"`+dlqARN+`"}`),
	},
	{
		name: "few receives", id: "Q2", verdict: Warn, text: "maxReceiveCount 4, less than 5",
		spoil: with("orders", "RedrivePolicy", `{"deadLetterTargetArn":"`+dlqARN+`","maxReceiveCount":"4"}`),
	},

	{
		name: "records end before messages", id: "Q5", verdict: Fail, words: "444 * time.Hour",
		text:  "records are kept for 18d, and a message of orders can come back 18d 12h after its first delivery",
		spoil: func(a *account) { a.deployment.Retention = 18 * 24 * time.Hour },
	},
	{
		name: "the default and a FIFO queue of 14 days", id: "Q5", verdict: Fail, fifo: true, words: "1020 * time.Hour",
		text:  "records are kept for 29d, and a message of orders.fifo can come back 42d 12h",
		spoil: all(with("orders.fifo", "MessageRetentionPeriod", "1209600"), func(a *account) { a.deployment.Retention = 0 }),
	},
	{
		name: "too short even for what is seen", id: "Q5", verdict: Fail, words: "204 * time.Hour", also: []string{"Q3", "Q4", "Q6"},
		text:  "can come back 8d 12h after its first delivery, through its dead-letter queue and a redrive: its event then runs again; not all was seen: sqs:GetQueueAttributes is denied",
		spoil: all(func(a *account) { a.deployment.Retention = 8 * 24 * time.Hour }, denyDLQ),
	},

	{
		name: "shorter than the function", id: "Q7", verdict: Fail, text: "hides a message for 29s, less than the 30s that billing may take",
		spoil: all(with("orders", "VisibilityTimeout", "29"), longest(time.Minute)),
	},
	{
		name: "shorter than six times the function", id: "Q7", verdict: Warn,
		text:  "for 2m59s, less than 6 x the 30s of billing + a batching window of 0s",
		spoil: with("orders", "VisibilityTimeout", "179"),
	},
	{
		name: "shorter by the batching window", id: "Q7", verdict: Warn,
		text:  "for 3m, less than 6 x the 30s of billing + a batching window of 20s",
		spoil: func(a *account) { a.mappings[0].MaximumBatchingWindowInSeconds = aws.Int32(20) },
	},
	{
		name: "shorter than six times the alias", id: "Q7", verdict: Warn, text: "less than 6 x the 1m of billing",
		spoil: func(a *account) {
			live := *a.functions["billing"]
			live.Timeout = aws.Int32(60)
			a.functions["billing:live"] = &live
			a.mappings[0].FunctionArn = aws.String(functionARN("billing") + ":live")
		},
	},
	{
		name: "a handler outlasts all receives", id: "Q7", verdict: Warn,
		text:  "all 5 receives of a message of orders together take 15m, and a handler up to 15m",
		spoil: longest(15 * time.Minute),
	},
	{
		name: "a handler outlasts all receives by a second and a part", id: "Q7", verdict: Warn, text: "a handler up to 15m1.5s",
		spoil: longest(15*time.Minute + 1500*time.Millisecond),
	},
	{
		name: "a worker's handler outlasts all receives", id: "Q7", verdict: Warn, text: "a handler up to 1h",
		spoil: all(longest(time.Hour), func(a *account) { a.deployment.Function = "" }),
	},
	{
		name: "a handler of three days", id: "Q7", verdict: Warn, text: "a handler up to 3d", words: "raise maxReceiveCount",
		spoil: longest(72 * time.Hour),
	},
	{
		name: "shorter than the function and the handler", id: "Q7", verdict: Fail, text: "together take 1m40s, and a handler up to 20m",
		spoil: all(with("orders", "VisibilityTimeout", "20"), longest(20*time.Minute)),
	},

	{
		name: "body as deduplication ID", id: "Q8", verdict: Warn, fifo: true, text: "orders.fifo uses the hash of the body",
		spoil: with("orders.fifo", "ContentBasedDeduplication", "true"),
	},
	{
		name: "half of high throughput", id: "Q8", verdict: Warn, fifo: true, text: `perMessageGroupId and the deduplication scope "queue"`,
		spoil: lie("orders.fifo", "FifoThroughputLimit", "perMessageGroupId"), before: truth,
	},
}

var crashDefects = []defect{
	{
		name: "crashes end in deletion", id: "Q9", verdict: Fail,
		text:  "5 crashes hide a message of orders for 1d 21h, and its retention is 1d: SQS deletes it before it reaches the dead-letter queue",
		spoil: all(with("orders", "VisibilityTimeout", "32400"), with("orders", "MessageRetentionPeriod", "86400")),
	},
	{
		name: "crashes end with the retention, by the second", id: "Q9", verdict: Fail, text: "for 1h, and its retention is 1h",
		spoil: all(with("orders", "VisibilityTimeout", "720"), with("orders", "MessageRetentionPeriod", "3600")),
	},
	{
		name: "crashes of a function of 90 min end in deletion", id: "Q9", verdict: Fail, text: "for 1d 21h, and", words: "raise the retention of orders above 1d 21h",
		spoil: all(with("orders", "VisibilityTimeout", "32400"), with("orders", "MessageRetentionPeriod", "86400"), func(a *account) {
			a.functions["billing"].Timeout = aws.Int32(5400)
		}),
	},
}

// durable makes the function one whose executions last so many seconds.
func durable(seconds *int32) func(*account) {
	return func(a *account) {
		a.functions["billing"].DurableConfig = &lambdatypes.DurableConfig{ExecutionTimeout: seconds}
	}
}

// managed puts the function on Managed Instances.
func managed(perProcess *int32) func(*account) {
	return func(a *account) {
		a.functions["billing"].CapacityProviderConfig = &lambdatypes.CapacityProviderConfig{
			LambdaManagedInstancesCapacityProviderConfig: &lambdatypes.LambdaManagedInstancesCapacityProviderConfig{PerExecutionEnvironmentMaxConcurrency: perProcess},
		}
	}
}

const start = "starts the execution by a name"

var durableDefects = []defect{
	{name: "durable", id: "L5", verdict: Warn, text: "starts an execution", words: start, spoil: durable(aws.Int32(900))},
	{name: "durable for longer than an invocation", id: "L5", verdict: Fail, text: "may last 15m1s, and one that a mapping has started fails after 15m",
		words: start, spoil: durable(aws.Int32(901))},
	{name: "durable, managed", id: "L5", verdict: Warn, text: "starts an execution", words: start, spoil: all(durable(aws.Int32(5400)), managed(aws.Int32(1)))},
	{name: "durable, managed, for longer", id: "L5", verdict: Fail, text: "1h30m1s", words: start, spoil: all(durable(aws.Int32(5401)), managed(aws.Int32(1)))},
	{name: "durable, without a timeout", id: "L5", verdict: Warn, text: "not all was seen: could not look: lambda does not say", words: start, spoil: durable(nil)},
}

// TestManaged: on Managed Instances the check says how many connections a pool needs, and nothing is wrong.
func TestManaged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil   func(*account)
		verdict Verdict
		text    string
	}{
		"ten":       {managed(aws.Int32(10)), OK, "a pool needs Concurrency x 10 connections"},
		"not known": {managed(nil), Unknown, "lambda does not say how many"},
		"other": {func(a *account) {
			a.functions["billing"].CapacityProviderConfig = &lambdatypes.CapacityProviderConfig{}
		}, Unknown, "lambda does not say"},
	} {
		run(t, name, func(a *account) {
			test.spoil(a)
			if f := a.examine(queueSideChecks()...)["L6"]; f.Verdict != test.verdict || !strings.Contains(f.Text, test.text) {
				a.Errorf("%s, want %s with %q", f, test.verdict, test.text)
			}
		})
	}
}

// denyDLQ denies the attributes of the dead-letter queue alone.
func denyDLQ(a *account) {
	a.sqs.refuse("GetQueueAttributes", func(in any) error {
		if host.QueueName(*in.(*sqs.GetQueueAttributesInput).QueueUrl) != host.QueueName(a.deployment.QueueURL) {
			return denial("sqs:GetQueueAttributes")
		}
		return nil
	})
}

func deleteDLQ(a *account) {
	must.Get(a.stack.SQS.DeleteQueue(context.Background(),
		&sqs.DeleteQueueInput{QueueUrl: aws.String(a.stack.QueueURL[a.dlq()])}))(a)
}

func mapped(change func(*mappingConfiguration)) func(*account) {
	return func(a *account) { change(a.mappings[0]) }
}

func in(state string) func(*account) {
	return mapped(func(m *mappingConfiguration) { m.State = &state })
}

func lastly(result string) func(*account) {
	return mapped(func(m *mappingConfiguration) { m.LastProcessingResult = &result })
}

func concurrency(most, reserved int32) func(*account) {
	return func(a *account) {
		a.mappings[0].ScalingConfig.MaximumConcurrency = &most
		a.reserved["billing"] = reserved
	}
}

var functionDefects = []defect{
	{
		name: "none", id: "L1", verdict: Fail, text: "no event source mapping sends messages of orders to billing",
		spoil: func(a *account) { a.mappings = nil },
	},
	{
		name: "of another function", id: "L1", verdict: Fail, text: "no event source mapping sends messages of orders to billing",
		spoil: mapped(func(m *mappingConfiguration) { m.FunctionArn = aws.String(functionARN("billing-test")) }),
	},
	{
		name: "of another alias", id: "L1", verdict: Fail, text: "no event source mapping sends messages of orders to billing:live",
		words: "--function-name billing:live",
		spoil: func(a *account) {
			a.deployment.Function = "billing:live"
			a.mappings[0].FunctionArn = aws.String(functionARN("billing") + ":test")
		},
	},
	{name: "disabled", id: "L1", verdict: Fail, text: "is Disabled: nothing receives for billing", spoil: in("Disabled")},
	{name: "on its way", id: "L1", verdict: Warn, text: "is Updating", words: "look again", spoil: in("Updating")},
	{name: "going", id: "L1", verdict: Fail, text: `in the state "Deleting"`, words: "create a mapping", spoil: in("Deleting")},
	{name: "failing", id: "L1", verdict: Fail, text: `the last result is "PROBLEM: Function call failed"`,
		words: "aws logs tail /aws/lambda/billing", spoil: lastly("PROBLEM: Function call failed")},
	{name: "a result of which nothing is known", id: "L1", verdict: Warn, text: `the last result is "Paused"`, words: "aws logs tail",
		spoil: lastly("Paused")},

	{
		name: "none", id: "L2", verdict: Fail, text: "has no ReportBatchItemFailures: Lambda deletes the messages that the function reports as failed",
		spoil: mapped(func(m *mappingConfiguration) { m.FunctionResponseTypes = nil }),
	},

	{
		name: "no limit", id: "L3", verdict: Warn, text: "has no MaximumConcurrency",
		spoil: mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil }),
	},
	{
		name: "no limit, and five reserved", id: "L3", verdict: Warn, text: "has no MaximumConcurrency",
		spoil: all(concurrency(10, 5), mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil })),
	},
	{
		name: "no limit, and one reserved", id: "L3", verdict: Warn, text: "above the reserved concurrency 1",
		spoil: all(concurrency(10, 1), mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil })),
	},
	{name: "above what is reserved", id: "L3", verdict: Warn,
		text: "invokes up to 10 at a time, above the reserved concurrency 9 of billing", spoil: concurrency(10, 9)},
	{name: "less reserved than can be the limit", id: "L3", verdict: Warn, text: "above the reserved concurrency 1 of billing",
		spoil: concurrency(10, 1)},
	{name: "nothing runs", id: "L3", verdict: Warn, text: "above the reserved concurrency 0 of billing", spoil: concurrency(10, 0)},
	{
		name: "provisioned pollers", id: "L3", verdict: Warn, text: "invokes up to 50 at a time, above the reserved concurrency 49",
		spoil: all(concurrency(10, 49), mapped(func(m *mappingConfiguration) {
			m.ScalingConfig, m.ProvisionedPollerConfig = nil, &lambdatypes.ProvisionedPollerConfig{MinimumPollers: aws.Int32(2),
				MaximumPollers: aws.Int32(5)}
		})),
	},

	{
		name: "provisioned pollers, as many as Lambda likes", id: "L3", verdict: Warn, text: "invokes up to 2000 at a time, above the reserved concurrency 1999",
		spoil: all(concurrency(10, 1999), mapped(func(m *mappingConfiguration) {
			m.ScalingConfig, m.ProvisionedPollerConfig = nil, &lambdatypes.ProvisionedPollerConfig{MinimumPollers: aws.Int32(2)}
		})),
	},

	{
		name: "a filter", id: "L4", verdict: Warn, text: "has 1 filter patterns",
		spoil: mapped(func(m *mappingConfiguration) {
			m.FilterCriteria = &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: aws.String(`{"body":{"kind":["order"]}}`)}}}
		}),
	},
	{
		name: "a filter that nobody can read", id: "L4", verdict: Warn, text: "cannot read (KMS.DisabledException)", words: "--filter-criteria",
		spoil: mapped(func(m *mappingConfiguration) {
			m.FilterCriteriaError = &lambdatypes.FilterCriteriaError{ErrorCode: aws.String("KMS.DisabledException")}
		}),
	},
}

// A new limit is within what is reserved, in one command.
func TestNewLimit(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	all(concurrency(10, 5), mapped(func(m *mappingConfiguration) { m.ScalingConfig = nil }))(a)
	f := a.examine(queueSideChecks()...)["L3"]
	if !strings.HasSuffix(f.Fix, " --scaling-config MaximumConcurrency=5") || strings.Contains(f.Fix, "&&") || strings.Contains(f.Text,
		"reserved") {
		t.Errorf("%s, fix %q", f, f.Fix)
	}
}
