package orders

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// outbox checks the table, the relay and its two doorbells.
func (c *checker) outbox() {
	const table, relay = "OutboxTable", "OutboxRelayFunction"
	t := c.Resources[table].Properties
	if got := fmt.Sprint(t.KeySchema); got != "[{pk HASH} {seq RANGE}]" {
		c.problem("%s: key schema is %s, want pk and seq", table, got)
	}
	if t.TTL.AttributeName != "" {
		c.problem("%s: TTL is on %q: it would delete events that nobody has published", table, t.TTL.AttributeName)
	}
	if t.Stream.View != "KEYS_ONLY" || !t.Recovery.Enabled {
		c.problem("%s: stream %q, point-in-time recovery %t: want KEYS_ONLY and true", table, t.Stream.View, t.Recovery.Enabled)
	}

	f := c.Resources[relay].Properties
	if f.Timeout != 60 {
		c.problem("%s: timeout is %d s, want 60", relay, f.Timeout)
	}
	env := f.Environment.Variables
	if env["OUTBOX_TABLE"] != table || !c.Resources[env["QUEUE_URL"]].Properties.FifoQueue {
		c.problem("%s: table %q, queue %q: want %s and a FIFO queue", relay, env["OUTBOX_TABLE"], env["QUEUE_URL"], table)
	}
	c.doorbell(relay, env["OUTBOX"]+"#", f.Events["Committed"])
	if s := f.Events["Sweep"]; s.Type != "Schedule" || s.Properties.Schedule != "rate(1 minute)" || !slices.Equal(s.Properties.State, list{"RelayRuns", "ENABLED", "DISABLED"}) {
		c.problem("%s: schedule is %v: want rate(1 minute), which Relays can stop", relay, s)
	}
	c.role(resource(f.Role), relayActions)
	for _, name := range c.names("AWS::Logs::MetricFilter") {
		if p := c.Resources[name].Properties; p.LogGroupName != "OutboxRelayLogGroup" || p.FilterPattern != `{ $.message = "`+sweptLine+`" }` {
			c.problem("%s: %s of %s: want the line %q of the relay", name, p.FilterPattern, p.LogGroupName, sweptLine)
		}
	}
}

// doorbell checks the mapping of the table's stream.
func (c *checker) doorbell(relay, prefix string, of eventProperties) {
	e := of.Properties
	if of.Type != "DynamoDB" || e.Stream != "OutboxTable.StreamArn" || e.Position != "TRIM_HORIZON" || e.Enabled != "Relays" {
		c.problem("%s: stream %q from %q, enabled %q: want that of the table, all of it, which Relays can stop", relay, e.Stream, e.Position, e.Enabled)
	}
	if e.BatchSize != 100 || e.Factor != 1 || !e.Bisects || e.Retries != 5 || e.Age != 3600 || !slices.Contains(e.FunctionResponseTypes, "ReportBatchItemFailures") {
		c.problem("%s: batch %d, factor %d, bisect %t, retries %d, age %d, responses %v", relay, e.BatchSize, e.Factor, e.Bisects, e.Retries, e.Age, e.FunctionResponseTypes)
	}
	var filter struct {
		EventName []string `json:"eventName"`
		Dynamodb  struct {
			Keys struct {
				PK struct {
					S []struct {
						Prefix string `json:"prefix"`
					}
				} `json:"pk"`
			}
		} `json:"dynamodb"`
	}
	if len(e.Filter.Filters) == 1 {
		d := json.NewDecoder(strings.NewReader(e.Filter.Filters[0].Pattern))
		d.DisallowUnknownFields()
		if err := d.Decode(&filter); err != nil {
			c.problem("%s: filter: %v", relay, err)
		}
	}
	if got := fmt.Sprint(filter); got != fmt.Sprintf("{[INSERT] {{{[{%s}]}}}}", prefix) {
		c.problem("%s: filter is %s, want what is inserted under %s", relay, got, prefix)
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
