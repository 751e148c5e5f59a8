package orders

import (
	"fmt"
	"slices"
)

// transformation is what a metric filter makes of a log line.
type transformation struct {
	Namespace  string `yaml:"MetricNamespace"`
	Name       string `yaml:"MetricName"`
	Value      string `yaml:"MetricValue"`
	Dimensions []struct {
		Key   string `yaml:"Key"`
		Value string `yaml:"Value"`
	} `yaml:"Dimensions"`
}

// relayActions are the actions that the role of the outbox's relay must allow; it may allow no others.
// TestRelayActions compares them with the calls that the code makes.
var relayActions = []string{
	"dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:DescribeStream", "dynamodb:GetItem", "dynamodb:GetRecords",
	"dynamodb:GetShardIterator", "dynamodb:ListStreams", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem",
	"logs:CreateLogStream", "logs:PutLogEvents",
	"sqs:GetQueueAttributes", "sqs:SendMessage",
	"xray:PutTelemetryRecords", "xray:PutTraceSegments",
}

// outbox checks what the relay and its doorbell refer to.
func (c *checker) outbox() {
	const table, relay = "OutboxTable", "OutboxRelayFunction"
	t := c.Resources[table].Properties
	if got := fmt.Sprint(t.KeySchema); got != "[{pk HASH} {seq RANGE}]" {
		c.problem("%s: key schema is %s, want pk and seq", table, got)
	}
	if t.TTL.AttributeName != "" {
		c.problem("%s: TTL is on %q: it would delete events that nobody has published", table, t.TTL.AttributeName)
	}
	f := c.Resources[relay].Properties
	env := f.Environment.Variables
	if env["OUTBOX_TABLE"] != table || !c.Resources[env["QUEUE_URL"]].Properties.FifoQueue {
		c.problem("%s: table %q, queue %q: want %s and a FIFO queue", relay, env["OUTBOX_TABLE"], env["QUEUE_URL"], table)
	}
	e := f.Events["Committed"].Properties
	if e.Stream != table+".StreamArn" || !slices.Contains(e.FunctionResponseTypes, "ReportBatchItemFailures") {
		c.problem("%s: stream %q with responses %q: want that of the table with ReportBatchItemFailures", relay, e.Stream, e.FunctionResponseTypes)
	}
	want := `{"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "` + env["OUTBOX"] + `#"}]}}}}`
	if len(e.Filter.Filters) != 1 || e.Filter.Filters[0].Pattern != want {
		c.problem("%s: filters are %v, want what is inserted into its outbox, %s", relay, e.Filter.Filters, want)
	}
	c.role(resource(f.Role), relayActions)
	for _, name := range c.names("AWS::Logs::MetricFilter") {
		if p := c.Resources[name].Properties; p.LogGroupName != "OutboxRelayLogGroup" || p.FilterPattern != `{ $.message = "`+sweptLine+`" }` {
			c.problem("%s: %s of %s: want the line %q of the relay", name, p.FilterPattern, p.LogGroupName, sweptLine)
		}
	}
}

// sweptLine is the relay's line about a sweep.
const sweptLine = "outbox: swept"

// filtered are the metrics that metric filters make, with the queue as their dimension.
func (c *checker) filtered() (names []string) {
	for _, name := range c.names("AWS::Logs::MetricFilter") {
		for _, t := range c.Resources[name].Properties.Transformations {
			if t.Namespace == "sqsonce" && fmt.Sprint(t.Dimensions) == "[{queue $.queue}]" {
				names = append(names, t.Name)
			}
		}
	}
	return names
}
