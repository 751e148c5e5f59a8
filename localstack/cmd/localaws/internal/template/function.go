package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
)

// function reads what localaws needs to know of a function: its other properties are for AWS alone.
func (t *template) function(r *resource) { t.readFunction(r, tree.Prop{}) }

func (t *template) readFunction(r *resource, globals tree.Prop) {
	get := func(name string) tree.Prop {
		if p := r.props.Get(name); p.Exists() {
			return p
		}
		return globals.Get(name)
	}
	f := plan.Function{ID: r.id, Name: t.named(r), Timeout: 3 * time.Second, MemorySize: 128, Env: map[string]string{}}
	if p := get("Timeout"); p.Exists() {
		f.Timeout = time.Duration(p.Int(1, 900)) * time.Second
	}
	if p := get("MemorySize"); p.Exists() {
		f.MemorySize = p.Int(128, 10240)
	}
	if p := r.props.Get("ReservedConcurrentExecutions"); p.Exists() {
		f.Concurrency = p.Int(1, 1000)
	}
	for _, p := range []tree.Prop{globals.Get("Environment").Get("Variables"), r.props.Get("Environment").Get("Variables")} {
		for _, name := range p.Keys() {
			if e, ok := errors.AsType[*leftOutError](p.Try(name)); ok {
				t.leaveOut("%s: variable %s: %s; set it with -env", r.id, name, e)
				continue
			}
			f.Env[name] = p.Get(name).Text()
		}
	}
	t.plan.Functions = append(t.plan.Functions, f)
}

// samFunction is a function with its events, each of which is a mapping.
func (t *template) samFunction(r *resource) {
	t.readFunction(r, t.reader.Root("Globals", t.root.Get("Globals").Get("Function").Node()))
	events := r.props.Get("Events")
	for _, name := range events.Keys() {
		e := events.Get(name)
		source, ok := map[string]string{"SQS": "Queue", "DynamoDB": "Stream"}[e.Get("Type").Text()]
		if !ok {
			t.leaveOut("%s: event %s (%s)", r.id, name, e.Get("Type").Text())
			continue
		}
		t.readMapping(r.id+name, t.named(r), source, e.Get("Properties"))
	}
}

func (t *template) mapping(r *resource) {
	t.readMapping(r.id, plan.FunctionName(r.props.Get("FunctionName").Text()), "EventSourceArn", r.props)
}

// Settings are the properties of a mapping that localaws applies.
var Settings = []string{
	"BatchSize", "BisectBatchOnFunctionError", "Enabled", "FilterCriteria", "FunctionResponseTypes", "MaximumBatchingWindowInSeconds",
	"MaximumRecordAgeInSeconds", "MaximumRetryAttempts", "ParallelizationFactor", "ScalingConfig", "StartingPosition",
}

// otherProperties are those that say what is mapped, and those without an effect here.
var otherProperties = []string{
	"EventSourceArn", "FunctionName", "Queue", "Stream",
	"DestinationConfig", "KmsKeyArn", "LoggingConfig", "MetricsConfig", "ProvisionedPollerConfig", "Tags", "TumblingWindowInSeconds",
}

// readMapping reads a mapping, whose source is the ARN in the property of that name.
func (t *template) readMapping(id, function, source string, p tree.Prop) {
	if e, ok := errors.AsType[*leftOutError](p.Try(source)); ok {
		t.leaveOut("%s: mapping of %s: %s", id, function, e)
		return
	}
	arn := p.Get(source)
	m := plan.Mapping{ID: plan.UUID(id), Function: function, Source: t.source(arn.Text())}
	if m.Source == "" {
		if arn.Exists() {
			t.leaveOut("%s: mapping of %s to %s", id, function, arn.Text())
		} else if t.reader.Err() == nil {
			p.Fail(fmt.Errorf("%s is missing", source))
		}
		return
	}
	p.Only(slices.Concat(Settings, otherProperties)...)
	for _, name := range []string{"DestinationConfig", "ProvisionedPollerConfig"} {
		if p.Get(name).Exists() {
			t.leaveOut("%s: %s", id, name)
		}
	}
	if w := p.Get("TumblingWindowInSeconds"); w.Exists() && w.Int(0, 900) > 0 {
		w.Fail(errors.New("localaws has no tumbling windows"))
	}
	if m.QueueName() == "" && !p.Get("StartingPosition").Exists() {
		p.Fail(errors.New("StartingPosition is missing"))
	}
	ReadSettings(p, &m)
	t.plan.Mappings = append(t.plan.Mappings, m)
}

// source returns the ARN of a queue or a stream as plan.Mapping has it, "" for another one.
func (t *template) source(arn string) string {
	part := strings.SplitN(arn, ":", 6)
	switch {
	case len(part) != 6:
	case part[2] == "sqs":
		return t.place.ARN("sqs", part[5])
	case part[2] == "dynamodb":
		if table, _, ok := strings.Cut(strings.TrimPrefix(part[5], "table/"), "/stream/"); ok {
			return plan.Stream(t.place, table)
		}
	}
	return ""
}

// ReadSettings reads the settings of a mapping, which have the names of CloudFormation and of Lambda's API. Those that are absent stay.
func ReadSettings(p tree.Prop, m *plan.Mapping) {
	number := func(name string, least, most int, set func(int)) {
		if v := p.Get(name); v.Exists() {
			set(v.Int(least, most))
		}
	}
	number("BatchSize", 1, 10_000, func(n int) { m.BatchSize = n })
	number("MaximumBatchingWindowInSeconds", 0, 300, func(n int) { m.Window = time.Duration(n) * time.Second })
	number("ParallelizationFactor", 1, 10, func(n int) { m.ParallelizationFactor = n })
	number("MaximumRecordAgeInSeconds", -1, 604_800, func(n int) { m.MaximumRecordAge = time.Duration(max(0, n)) * time.Second })
	number("MaximumRetryAttempts", -1, 10_000, func(n int) {
		if m.MaximumRetryAttempts = &n; n < 0 {
			m.MaximumRetryAttempts = nil
		}
	})
	m.Disabled = !p.Get("Enabled").Bool(!m.Disabled)
	m.BisectOnError = p.Get("BisectBatchOnFunctionError").Bool(m.BisectOnError)
	if s := p.Get("ScalingConfig"); s.Exists() {
		m.MaximumConcurrency = 0
		if c := s.Get("MaximumConcurrency"); c.Exists() {
			m.MaximumConcurrency = c.Int(2, 1000)
		}
	}
	if kinds := p.Get("FunctionResponseTypes"); kinds.Exists() {
		m.ReportBatchItemFailures = false
		for _, kind := range kinds.List() {
			if m.ReportBatchItemFailures = kind.Text() == "ReportBatchItemFailures"; !m.ReportBatchItemFailures {
				kind.Fail(fmt.Errorf("is %q, must be ReportBatchItemFailures", kind.Text()))
			}
		}
	}
	if f := p.Get("FilterCriteria"); f.Exists() {
		m.Filters = nil
		for _, f := range f.Get("Filters").List() {
			m.Filters = append(m.Filters, f.Get("Pattern").Text())
		}
	}
	if s := p.Get("StartingPosition"); s.Exists() {
		if m.FromLatest = s.Text() == "LATEST"; !m.FromLatest && s.Text() != "TRIM_HORIZON" {
			s.Fail(fmt.Errorf("is %q, must be TRIM_HORIZON or LATEST", s.Text()))
		}
	}
}
