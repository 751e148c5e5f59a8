package orders

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// checkTemplate checks the relations between resources that cfn-lint does not check. It returns the problems, and the number
// of event source mappings that it has checked: 0 means that it did not understand the template.
func checkTemplate(text []byte, ttlAttribute string) (problems []string, checked int) {
	var t template
	if err := yaml.Unmarshal(text, &t); err != nil {
		return []string{err.Error()}, 0
	}
	c := &checker{template: t}
	c.table("DedupTable", ttlAttribute)
	c.kept()
	c.alarms()
	c.bothQueues()
	c.dashboard()
	c.outbox()
	for _, name := range t.names("AWS::Serverless::Function") {
		for _, event := range t.Resources[name].Properties.Events {
			if event.Type == "SQS" {
				checked++
				c.mapping(name, event.Properties)
			}
		}
	}
	if checked == 0 {
		c.problem("no event source mapping found")
	}
	return c.problems, checked
}

type checker struct {
	template
	problems []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) table(name, ttlAttribute string) {
	r, p := c.Resources[name], c.Resources[name].Properties
	if p.TTL.AttributeName != ttlAttribute || !p.TTL.Enabled {
		c.problem("%s: TTL is on %q (enabled %t), the store writes %q", name, p.TTL.AttributeName, p.TTL.Enabled, ttlAttribute)
	}
	if len(p.KeySchema) != 1 || p.KeySchema[0].AttributeName != "id" || p.KeySchema[0].KeyType != "HASH" {
		c.problem("%s: key schema is %v, want only the hash key id", name, p.KeySchema)
	}
	if !slices.Contains(r.DeletionPolicy, "Retain") || r.UpdateReplacePolicy != "Retain" {
		c.problem("%s: want DeletionPolicy and UpdateReplacePolicy Retain: without its records events run again", name)
	}
}

// kept checks that every table and dead-letter queue outlives the stack where it keeps them, and none does where it does not.
func (c *checker) kept() {
	deadLetter := map[string]bool{}
	for _, name := range c.names("AWS::SQS::Queue") {
		deadLetter[resource(c.Resources[name].Properties.RedrivePolicy.Target)] = true
	}
	for name, r := range c.Resources {
		table := r.Type == "AWS::DynamoDB::Table"
		if (table || deadLetter[name]) && !slices.Equal(r.DeletionPolicy, list{"Keeps", "Retain", "Delete"}) {
			c.problem("%s: DeletionPolicy is %v, want Retain if the stack keeps it, else Delete", name, r.DeletionPolicy)
		}
		if got := r.Properties.DeletionProtection; table && !slices.Equal(got, list{"Keeps", "true", "false"}) {
			c.problem("%s: deletion protection is %v, want it on if the stack keeps the table, else off", name, got)
		}
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
		c.problem("%s: visibility timeout %d is below 6 x %d + window %d", queue, q.VisibilityTimeout, timeout, e.Window)
	}
	if !slices.Contains(e.FunctionResponseTypes, "ReportBatchItemFailures") {
		c.problem("%s: without ReportBatchItemFailures the failed messages of a batch are deleted", function)
	}
	longest, _ := c.Parameters["LongestHandlerSeconds"].Default.(int)
	if receives, _ := q.RedrivePolicy.MaxReceiveCount.(int); longest == 0 || q.VisibilityTimeout*receives <= longest {
		c.problem("%s: visibility %d x maxReceiveCount %d is not above the longest handler, %d s", queue, q.VisibilityTimeout, receives, longest)
	}
	c.redrive(queue, q)
	c.thresholds(queue, q, timeout)
	c.logging(function, f)
	c.role(resource(f.Role), actions)
}

func (c *checker) redrive(queue string, q properties) {
	receives, isNumber := q.RedrivePolicy.MaxReceiveCount.(int)
	if !isNumber || receives < 5 {
		c.problem("%s: maxReceiveCount is %v, want a number of at least 5", queue, q.RedrivePolicy.MaxReceiveCount)
	}
	dlq := c.Resources[resource(q.RedrivePolicy.Target)].Properties
	if dlq.FifoQueue != q.FifoQueue {
		c.problem("%s: its dead-letter queue is not of the same kind", queue)
	}
	if dlq.MessageRetentionPeriod <= q.MessageRetentionPeriod {
		c.problem("%s: its dead-letter queue's retention is not longer than its own", queue)
	}
}

// actions are the actions that a function's role must allow; it may allow no others. TestTemplateActions compares them with
// the calls that the code makes.
var actions = []string{
	"dynamodb:GetItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:UpdateItem",
	"logs:CreateLogStream", "logs:PutLogEvents",
	"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl",
	"sqs:ReceiveMessage", "sqs:SendMessage",
	"xray:PutTelemetryRecords", "xray:PutTraceSegments",
}

func (c *checker) role(name string, want []string) {
	var got []string
	for _, p := range c.Resources[name].Properties.Policies {
		for _, s := range p.PolicyDocument.Statement {
			got = append(got, s.Action...)
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		c.problem("%s: allows %v, want %v", name, got, want)
	}
}

// resource returns the logical name in !Ref X or !GetAtt X.Attribute. The YAML package drops the tag and returns the text.
func resource(ref string) string {
	name, _, _ := strings.Cut(ref, ".")
	return name
}

// template is the parts of a SAM template that are checked. Every field has a tag: without one yaml.v3 looks for a
// lower-case key, and finds nothing.
type template struct {
	Parameters map[string]struct {
		Default any `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function properties `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]struct {
		Type                string     `yaml:"Type"`
		DeletionPolicy      list       `yaml:"DeletionPolicy"` // a word, or the arguments of !If
		UpdateReplacePolicy string     `yaml:"UpdateReplacePolicy"`
		Properties          properties `yaml:"Properties"`
	} `yaml:"Resources"`
}

type properties struct {
	// functions
	Environment struct {
		Variables map[string]string `yaml:"Variables"`
	} `yaml:"Environment"`
	Timeout int                        `yaml:"Timeout"`
	Role    string                     `yaml:"Role"`
	Events  map[string]eventProperties `yaml:"Events"`
	// queues
	FifoQueue              bool `yaml:"FifoQueue"`
	VisibilityTimeout      int  `yaml:"VisibilityTimeout"`
	MessageRetentionPeriod int  `yaml:"MessageRetentionPeriod"`
	RedrivePolicy          struct {
		Target          string `yaml:"deadLetterTargetArn"`
		MaxReceiveCount any    `yaml:"maxReceiveCount"`
	} `yaml:"RedrivePolicy"`
	// tables
	KeySchema []struct {
		AttributeName string `yaml:"AttributeName"`
		KeyType       string `yaml:"KeyType"`
	} `yaml:"KeySchema"`
	DeletionProtection list `yaml:"DeletionProtectionEnabled"`
	TTL                struct {
		AttributeName string `yaml:"AttributeName"`
		Enabled       bool   `yaml:"Enabled"`
	} `yaml:"TimeToLiveSpecification"`
	Logging struct {
		Level string `yaml:"ApplicationLogLevel"`
	} `yaml:"LoggingConfig"`
	// alarms and dashboards
	alarm         `yaml:",inline"`
	DashboardBody string `yaml:"DashboardBody"`
	// metric filters
	LogGroupName    string           `yaml:"LogGroupName"`
	FilterPattern   string           `yaml:"FilterPattern"`
	Transformations []transformation `yaml:"MetricTransformations"`
	// roles and policies
	Policies []struct {
		PolicyDocument policy `yaml:"PolicyDocument"`
	} `yaml:"Policies"`
	PolicyDocument policy `yaml:"PolicyDocument"`
}

type policy struct {
	Statement []struct {
		Action   list `yaml:"Action"`
		Resource list `yaml:"Resource"`
	} `yaml:"Statement"`
}

type eventProperties struct {
	Type       string `yaml:"Type"`
	Properties event  `yaml:"Properties"`
}

type event struct {
	Queue                 string   `yaml:"Queue"`
	Window                int      `yaml:"MaximumBatchingWindowInSeconds"`
	FunctionResponseTypes []string `yaml:"FunctionResponseTypes"`
	// of a stream
	Stream string `yaml:"Stream"`
	Filter struct {
		Filters []struct {
			Pattern string `yaml:"Pattern"`
		} `yaml:"Filters"`
	} `yaml:"FilterCriteria"`
}

// list is a string or a list of strings, as the Action of a policy.
type list []string

func (l *list) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = list{n.Value}
		return nil
	}
	return n.Decode((*[]string)(l))
}

// names returns the logical names of the resources of a type, sorted.
func (t *template) names(kind string) []string {
	var names []string
	for name, r := range t.Resources {
		if r.Type == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
