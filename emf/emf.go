// Package emf writes a Lambda function's metrics for CloudWatch as log lines, in the embedded metric format. Each invocation
// gets one line, without an agent, a layer or a call.
//
//	m, err := emf.New()
//	once, err := dedup.New(store, "billing", m.Once)
//	l, err := limit.New(rules, m.Limiter)
//	lambda.Start(limit.Handler(l, once.Handler(h)), m.Lambda)
//
// # Metrics
//
// The dimensions are service and queue. Times are in milliseconds. These metrics are in each line:
//
//   - Records, Done (duplicates included), Failed and Duplicates. Records is the sum of all outcomes.
//   - RemainingTime, until the function's deadline.
//   - HandlerDuration and TimeInQueue, with a value for each handler that was started. TimeInQueue counts from when SQS
//     accepted the message.
//
// The following metrics are in a line only if they are not 0, because a metric that isn't sent is free:
//
//   - Redelivered (receive count above 1) and DeadLettered. The other outcomes of [lambda.Report], with the names of
//     [sqsonce.OutcomeKind]'s constants, such as LeaseLost.
//   - Of limits, in a line for each rule with the further dimension rule: Started, Postponed, Owed, NoGroup and CounterOutages, which
//     are counts of [limit.RuleStats]. Never by key.
//   - Of deduplication: Takeovers, StoreErrors (failed calls) and NotCompleted (records).
//
// For queries, a line has level INFO, timestamp, requestId, traceId and cold_start too. A function whose application log
// level is above INFO drops the line with all its metrics. A process that is killed loses the line of its invocation.
// CloudWatch may count a line twice.
package emf

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/limit"
)

// Limits of the format, in characters, and of a dimension set.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
const (
	maxNamespace      = 1_024
	maxDimension      = 250
	maxDimensionValue = 1_024
	maxDimensions     = 30
	ownDimensions     = 3   // service, queue, rule
	maxValues         = 100 // of a metric in one line
)

var namespaceText = regexp.MustCompile(`^[A-Za-z0-9._/#: -]*$`)

// Options configure [New].
type Options struct {
	// Namespace is the namespace of the metrics. AWS/ is CloudWatch's own.
	// Default: "sqsonce". Limits: at most 1,024 of A-Z a-z 0-9 . - _ / # : and space, not all blank.
	Namespace string
	// Service is the value of the dimension "service".
	// Default: POWERTOOLS_SERVICE_NAME, else AWS_LAMBDA_FUNCTION_NAME. Limits: at most 1,024 characters of ASCII, without
	// control characters, and not all blank.
	Service string
	// Dimensions are further dimensions, the same in every line. Each new combination of values is a custom metric that costs
	// money.
	// Default: empty. Limits: at most 27, with names of at most 250 characters, and values of at most 1,024 with the rules of
	// Service.
	Dimensions map[string]string
	// Writer gets each line in one Write.
	// Default: os.Stdout.
	Writer io.Writer
}

// Metrics counts invocations and writes their lines. It is safe for concurrent use.
type Metrics struct {
	namespace  string
	names      []string // of the dimensions
	dimensions map[string]string
	warm       atomic.Bool // an invocation has begun
	writeError sync.Once

	mu sync.Mutex // of the writer: one line at a time
	w  io.Writer

	limits    sync.Mutex
	limiters  []*limit.Limiter
	ruleNames cut.Names
	last      []limit.RuleStats // what the last lines of rules have counted; a limiter's rules stay at their places
}

// New returns Metrics. The error joins a [*sqsonce.OptionError] for each option that CloudWatch would refuse.
func New(optFns ...func(*Options)) (*Metrics, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o.Namespace = cmp.Or(o.Namespace, "sqsonce")
	o.Service = cmp.Or(o.Service, os.Getenv("POWERTOOLS_SERVICE_NAME"), os.Getenv("AWS_LAMBDA_FUNCTION_NAME"))
	if host.IsNil(o.Writer) {
		o.Writer = os.Stdout
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := &Metrics{namespace: o.Namespace, w: o.Writer, dimensions: maps.Clone(o.Dimensions)}
	if m.dimensions == nil {
		m.dimensions = map[string]string{}
	}
	m.dimensions["service"] = o.Service
	m.names = append([]string{"service", "queue"}, slices.Sorted(maps.Keys(o.Dimensions))...)
	return m, nil
}

func (o *Options) validate() error {
	p := host.Problems{Package: "emf"}
	add := p.Add
	check := func(field, text string, most int) {
		add(len(text) > most, field, "has %d bytes, must have at most %d characters", len(text), most)
		add(text != "" && strings.TrimSpace(text) == "", field, "is blank")
		add(strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }), field, "must be ASCII without control characters")
	}
	check("Options.Namespace", o.Namespace, maxNamespace)
	add(strings.HasPrefix(o.Namespace, "AWS/"), "Options.Namespace", "begins with AWS/, which is CloudWatch's own")
	add(strings.HasPrefix(o.Namespace, ":"), "Options.Namespace", "begins with a colon")
	add(!namespaceText.MatchString(o.Namespace), "Options.Namespace", "must be of A-Z a-z 0-9 . - _ / # : and space")
	add(o.Service == "", "Options.Service", "is empty, and neither POWERTOOLS_SERVICE_NAME nor AWS_LAMBDA_FUNCTION_NAME is set")
	check("Options.Service", o.Service, maxDimensionValue)
	add(len(o.Dimensions) > maxDimensions-ownDimensions, "Options.Dimensions", "has %d, must have at most %d", len(o.Dimensions), maxDimensions-ownDimensions)
	for _, name := range slices.Sorted(maps.Keys(o.Dimensions)) {
		field := fmt.Sprintf("Options.Dimensions[%q]", name)
		add(name == "", field, "has no name")
		add(strings.HasPrefix(name, ":"), field, "begins with a colon")
		add(isMember(name), field, "is the name of a member that each line has")
		check(field, name, maxDimension)
		add(o.Dimensions[name] == "", field, "is empty")
		check(field, o.Dimensions[name], maxDimensionValue)
	}
	return p.Err()
}

// Lambda is an option of [lambda.Start], [lambda.NewHandler] and [lambda.Wrap]. Set it after other options that do something at
// the end of an invocation, such as otelsqs's with Flush. The last Finish hook is called first, so the line isn't lost if
// another hook hangs.
func (m *Metrics) Lambda(o *lambda.Options) {
	o.Hooks = append(o.Hooks, lambda.Hooks{
		Hooks: sqsonce.Hooks{Start: m.start, End: m.end}, Begin: m.begin, Finish: m.finish,
	})
}

// Once is an option of [dedup.New]. It adds the duplicates, takeovers and store errors of an invocation to its line.
func (m *Metrics) Once(o *dedup.Options) {
	o.Hooks = append(o.Hooks, dedup.Hooks{Decided: m.decided, Called: m.called, Incident: m.incident})
}
