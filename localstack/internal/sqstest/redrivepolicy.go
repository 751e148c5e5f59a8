package sqstest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var redrivePolicyCases = []testCase{
	{name: "redrive policy/count as a string", run: policyCountString},
	{name: "redrive policy/sources of a dead-letter queue", run: policySources},
	{name: "redrive policy/removed", run: policyRemoved},
	{name: "redrive policy/not JSON refused", alone: true, run: policyNotJSON},
	{name: "redrive policy/without count or target refused", run: policyIncomplete},
	{name: "redrive policy/count of 0 or 1001 refused", run: policyCountRefused},
	{name: "redrive policy/unknown target refused", run: policyUnknownTarget},
	{name: "redrive policy/target of the other type refused", run: policyOtherType},
}

// API CreateQueue, RedrivePolicy: maxReceiveCount is written as a string in AWS's own examples.
func policyCountString(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":"1"}`, x.arn(dlq))})
	x.send(q, "a")
	x.exhaust(q, "a", 1)
	x.one(dlq, "a")
}

// API ListDeadLetterSourceQueues.
func policySources(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.standard()
	out, err := x.c.ListDeadLetterSourceQueues(x.ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq.url})
	x.ok(err)
	if len(out.QueueUrls) != 1 || out.QueueUrls[0] != q.url {
		x.fatalf("sources %v, want %s", out.QueueUrls, q.url)
	}
}

// Recorded: test_set_empty_redrive_policy: an empty value removes it.
func policyRemoved(x *exam) {
	dlq := x.standard()
	q := x.standard(attrs{"RedrivePolicy": x.policy(dlq, 1)})
	x.ok(x.set(q, attrs{"RedrivePolicy": ""}))
	x.send(q, "a")
	for range 3 {
		x.visibility(q, x.one(q, "a"), 0)
	}
	if v, ok := x.attributes(q)["RedrivePolicy"]; ok {
		x.fatalf("RedrivePolicy %q, want none", v)
	}
}

// refusesPolicy expects a policy to be refused.
func (x *exam) refusesPolicy(what, policy string) {
	err := x.set(x.standard(), attrs{"RedrivePolicy": policy})
	x.fails(what, err, invalidValue, "InvalidAttributeValue")
}

// API SetQueueAttributes, RedrivePolicy: "as a JSON object". A server that stores it may fail at it later, for every queue.
func policyNotJSON(x *exam) { x.refusesPolicy("not JSON", "maxReceiveCount=1") }

// API SetQueueAttributes, RedrivePolicy: it "includes the parameters" deadLetterTargetArn and maxReceiveCount.
func policyIncomplete(x *exam) {
	x.refusesPolicy("no target", `{"maxReceiveCount":1}`)
	x.refusesPolicy("no count", fmt.Sprintf(`{"deadLetterTargetArn":"%s"}`, x.arn(x.standard())))
}

// Recorded: test_redrive_policy_attribute_validity. Valid counts are "from 1 to 1000 both inclusive".
func policyCountRefused(x *exam) {
	dlq := x.standard()
	for _, n := range []int{0, 1001} {
		x.refusesPolicy(fmt.Sprint("a count of ", n), x.policy(dlq, n))
	}
}

// The error is the one that users of infrastructure tools meet: "Dead letter target does not exist."
func policyUnknownTarget(x *exam) {
	dlq := x.standard()
	x.refusesPolicy("no such queue", strings.ReplaceAll(x.policy(dlq, 1), dlq.name, name()))
}

// API CreateQueue, RedrivePolicy: "The dead-letter queue of a FIFO queue must also be a FIFO queue."
func policyOtherType(x *exam) {
	x.refusesPolicy("a FIFO target", x.policy(x.fifo(), 1))
	err := x.set(x.fifo(), attrs{"RedrivePolicy": x.policy(x.standard(), 1)})
	x.fails("a standard target", err, invalidValue, "InvalidAttributeValue")
}
