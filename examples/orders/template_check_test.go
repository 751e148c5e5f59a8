package orders

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// checkTemplate checks the relations between resources that cfn-lint does not see. It returns what is wrong and how many
// event source mappings it has looked at: none means that the template was not understood.
func checkTemplate(text []byte, ttlAttribute string) (problems []string, checked int) {
	var t template
	if err := yaml.Unmarshal(text, &t); err != nil {
		return []string{err.Error()}, 0
	}
	c := &checker{template: t}
	c.table("DedupTable", ttlAttribute)
	for _, name := range t.names("AWS::Serverless::Function") {
		for _, event := range t.Resources[name].Properties.Events {
			if event.Type == "SQS" {
				checked++
				c.mapping(name, event.Properties)
			}
		}
	}
	if checked == 0 {
		c.say("no event source mapping found")
	}
	return c.problems, checked
}

type checker struct {
	template
	problems []string
}

func (c *checker) say(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) table(name, ttlAttribute string) {
	r, p := c.Resources[name], c.Resources[name].Properties
	if p.TTL.AttributeName != ttlAttribute || !p.TTL.Enabled {
		c.say("%s: TTL is on %q (enabled %t), the store writes %q", name, p.TTL.AttributeName, p.TTL.Enabled, ttlAttribute)
	}
	if len(p.KeySchema) != 1 || p.KeySchema[0].AttributeName != "id" || p.KeySchema[0].KeyType != "HASH" {
		c.say("%s: key schema is %v, want the hash key id alone", name, p.KeySchema)
	}
	if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
		c.say("%s: want DeletionPolicy and UpdateReplacePolicy Retain: without its records every event runs again", name)
	}
}

func (c *checker) mapping(function string, e event) {
	f := c.Resources[function].Properties
	queue := resource(e.Queue)
	q := c.Resources[queue].Properties
	timeout := f.Timeout
	if timeout == 0 {
		timeout = c.Globals.Function.Timeout
	}
	if least := 6*timeout + e.Window; timeout == 0 || q.VisibilityTimeout < least {
		c.say("%s: visibility timeout %d is under 6 x %d + window %d", queue, q.VisibilityTimeout, timeout, e.Window)
	}
	if e.BatchSize > 10 && e.Window < 1 {
		c.say("%s: a batch size of %d needs a batching window", function, e.BatchSize)
	}
	if q.FifoQueue && (e.BatchSize > 10 || e.Window > 0) {
		c.say("%s: a FIFO mapping takes at most 10 and no window", function)
	}
	if !slices.Contains(e.FunctionResponseTypes, "ReportBatchItemFailures") {
		c.say("%s: without ReportBatchItemFailures the failures of a batch are deleted", function)
	}
	if e.DestinationConfig != nil {
		c.say("%s: DestinationConfig is not used for SQS", function)
	}
	if e.ProvisionedPollerConfig != nil {
		c.say("%s: ProvisionedPollerConfig excludes ScalingConfig", function)
	}
	if e.ScalingConfig["MaximumConcurrency"] == nil {
		c.say("%s: no MaximumConcurrency: throttled invocations would spend receives", function)
	}
	if e.Enabled != "Enabled" {
		c.say("%s: Enabled is %v, want the parameter", function, e.Enabled)
	}
	if got := c.Globals.Function; got.Runtime != "provided.al2023" || got.Handler != "bootstrap" || !slices.Equal(got.Architectures, []string{"arm64"}) {
		c.say("functions run on %s %v with handler %q, want provided.al2023 [arm64] bootstrap", got.Runtime, got.Architectures, got.Handler)
	}
	c.redrive(queue, q)
	c.alarms(function, queue, resource(q.RedrivePolicy.Target))
	c.role(resource(f.Role))
}

func (c *checker) redrive(queue string, q properties) {
	receives, isNumber := q.RedrivePolicy.MaxReceiveCount.(int)
	if !isNumber || receives < 5 {
		c.say("%s: maxReceiveCount is %v, want a number of at least 5", queue, q.RedrivePolicy.MaxReceiveCount)
	}
	longest, _ := c.Parameters["LongestHandlerSeconds"].Default.(int)
	if longest == 0 || q.VisibilityTimeout*receives <= longest {
		c.say("%s: visibility %d x maxReceiveCount %d is not above the longest handler, %d s", queue, q.VisibilityTimeout, receives, longest)
	}
	dlq := c.Resources[resource(q.RedrivePolicy.Target)].Properties
	if dlq.FifoQueue != q.FifoQueue {
		c.say("%s: its dead-letter queue is not of the same kind", queue)
	}
	if dlq.MessageRetentionPeriod <= q.MessageRetentionPeriod {
		c.say("%s: its dead-letter queue's retention is not longer than its own", queue)
	}
}

func (c *checker) alarms(function, queue, dlq string) {
	for _, want := range [][2]string{
		{"ApproximateNumberOfMessagesVisible", dlq},
		{"ApproximateAgeOfOldestMessage", queue},
		{"Errors", function},
		{"Throttles", function},
	} {
		if !slices.ContainsFunc(c.names("AWS::CloudWatch::Alarm"), func(name string) bool {
			p := c.Resources[name].Properties
			return p.MetricName == want[0] && len(p.Dimensions) == 1 && resource(p.Dimensions[0].Value) == want[1]
		}) {
			c.say("no alarm on %s of %s", want[0], want[1])
		}
	}
}

// actions are what the function's role must have, and all it may have. TestTemplateActions holds them against the calls
// that the code makes.
var actions = []string{
	"dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:UpdateItem",
	"logs:CreateLogStream", "logs:PutLogEvents",
	"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl",
	"sqs:ReceiveMessage", "sqs:SendMessage",
	"xray:PutTelemetryRecords", "xray:PutTraceSegments",
}

func (c *checker) role(name string) {
	var got []string
	for _, p := range c.Resources[name].Properties.Policies {
		for _, s := range p.PolicyDocument.Statement {
			got = append(got, s.Action...)
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, actions) {
		c.say("%s: allows %v, want %v", name, got, actions)
	}
}

// resource returns the logical name in a !Ref X or !GetAtt X.Attribute, which yaml decodes as the plain text.
func resource(ref string) string {
	name, _, _ := strings.Cut(ref, ".")
	return name
}
