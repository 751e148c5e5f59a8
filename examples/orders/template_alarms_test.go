package orders

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/internal/host"
)

// runbook is what the description of an alarm ends in, and its section.
var runbook = regexp.MustCompile(`^([A-Z][^.]+\.) https://github\.com/sqsonce/sqsonce/blob/main/docs/runbook\.md#([a-z-]+)$`)

// alarm is the properties of an alarm: one metric, or Metrics with one expression.
type alarm struct {
	Description       string `yaml:"AlarmDescription"`
	metric            `yaml:",inline"`
	Statistic         string       `yaml:"Statistic"`
	ExtendedStatistic string       `yaml:"ExtendedStatistic"`
	Period            int          `yaml:"Period"`
	Metrics           []alarmQuery `yaml:"Metrics"`
	Datapoints        int          `yaml:"DatapointsToAlarm"`
	Periods           int          `yaml:"EvaluationPeriods"`
	Threshold         string       `yaml:"Threshold"`
	Actions           []any        `yaml:"AlarmActions"`
}

type alarmQuery struct {
	ID         string `yaml:"Id"`
	Expression string `yaml:"Expression"`
	ReturnData *bool  `yaml:"ReturnData"`
	Stat       struct {
		Stat   string `yaml:"Stat"`
		Period int    `yaml:"Period"`
		Metric metric `yaml:"Metric"`
	} `yaml:"MetricStat"`
}

type metric struct {
	Namespace  string      `yaml:"Namespace"`
	Name       string      `yaml:"MetricName"`
	Dimensions []dimension `yaml:"Dimensions"`
}

type dimension struct {
	Name  string `yaml:"Name"`
	Value string `yaml:"Value"`
}

// String is namespace, name, and dimensions with their values.
func (m metric) String() string {
	text := m.Namespace + " " + m.Name
	for _, d := range m.Dimensions {
		text += " " + d.Name + " " + d.Value
	}
	return text
}

// metrics are those that the alarm is about.
func (a alarm) metrics() []metric {
	var all []metric
	for _, q := range a.Metrics {
		if q.Expression == "" {
			all = append(all, q.Stat.Metric)
		}
	}
	if a.Name != "" {
		all = append(all, a.metric)
	}
	return all
}

// alarms checks the alarms that are in the template, and their metrics.
func (c *checker) alarms() {
	for _, name := range c.names("AWS::CloudWatch::Alarm") {
		a := c.Resources[name].Properties.alarm
		if !runbook.MatchString(a.Description) || len(a.Description) > 1_024 {
			c.problem("%s: description is %q, want one sentence and the address of a section of the runbook", name, a.Description)
		}
		if len(a.Actions) == 0 {
			c.problem("%s: no actions: nobody is told", name)
		}
		c.query(name, a)
		for _, m := range a.metrics() {
			c.metric(name, m)
		}
	}
}

// bothQueues checks that the alarms of one queue are those of the other too.
func (c *checker) bothQueues() {
	for _, name := range c.names("AWS::CloudWatch::Alarm") {
		of, isOrders := strings.CutPrefix(name, "Orders")
		other := "OrdersFifo" + of
		if fifo, isFifo := strings.CutPrefix(of, "Fifo"); isFifo {
			other = "Orders" + fifo
		}
		if isOrders && c.Resources[other].Type != "AWS::CloudWatch::Alarm" {
			c.problem("%s: the other queue has no such alarm, %s", name, other)
		}
	}
}

// query checks what CloudWatch refuses.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
func (c *checker) query(name string, a alarm) {
	if len(a.Metrics) == 0 {
		if a.Period != 60 || (a.Statistic == "") == (a.ExtendedStatistic == "") || strings.HasPrefix(a.Statistic, "p") {
			c.problem("%s: period %d, statistic %q, extended statistic %q: want 60 and one of them", name, a.Period, a.Statistic, a.ExtendedStatistic)
		}
		return
	}
	if len(a.Metrics) > 11 || a.Name != "" || a.Period != 0 || a.Statistic+a.ExtendedStatistic != "" {
		c.problem("%s: more than 10 metrics, or a metric beside Metrics", name)
	}
	for _, q := range a.Metrics {
		if returned := q.ReturnData == nil || *q.ReturnData; returned != (q.Expression != "") || !returned && q.Stat.Period != 60 {
			c.problem("%s: %s: want to return the expression and nothing else, and periods of 60 s", name, q.ID)
		}
	}
}

// awsMetrics are metrics of AWS by namespace and dimensions, as far as they are useful here.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CloudWatch-Logs-Monitoring-CloudWatch-Metrics.html
var awsMetrics = map[string][]string{
	"AWS/SQS QueueName": {
		"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesVisible",
		"ApproximateAgeOfOldestMessageInQuietGroups", "ApproximateNumberOfMessagesVisibleInQuietGroups", "ApproximateNumberOfNoisyGroups",
		"NumberOfEmptyReceives", "NumberOfMessagesDeleted", "NumberOfMessagesReceived", "NumberOfMessagesSent",
	},
	"AWS/Lambda FunctionName":           {"ConcurrentExecutions", "Duration", "Errors", "Invocations", "IteratorAge", "Throttles"},
	"AWS/Lambda EventSourceMappingUUID": {"DeletedEventCount", "FailedInvokeEventCount", "InvokedEventCount", "PolledEventCount"},
	"AWS/DynamoDB TableName":            {"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents"},
	"AWS/DynamoDB TableName Operation":  {"SuccessfulRequestLatency", "SystemErrors", "ThrottledRequests"},
	"AWS/Logs LogGroupName":             {"EMFParsingErrors", "EMFValidationErrors", "IncomingBytes", "IncomingLogEvents"},
}

// metric checks that AWS or package emf has a metric, and that its dimensions have resources of their kind.
func (c *checker) metric(where string, m metric) {
	kind, values := m.Namespace, map[string]string{}
	for _, d := range m.Dimensions {
		kind += " " + d.Name
		values[d.Name] = d.Value
	}
	known := awsMetrics[kind]
	switch kind {
	case "sqsonce service queue":
		known = emfMetrics()
	case "sqsonce queue":
		known = c.filtered()
	}
	if !slices.Contains(known, m.Name) {
		c.problem("%s: neither AWS nor package emf has a metric %s of %s", where, m.Name, kind)
	}
	ok := true
	for name, value := range values {
		switch name {
		case "QueueName", "queue":
			of, isName := strings.CutSuffix(value, ".QueueName")
			isURL := kind == "sqsonce queue" && !isName // as the relay's line has it
			ok = ok && (isName || isURL) && c.Resources[of].Type == "AWS::SQS::Queue"
		case "FunctionName", "service":
			ok = ok && c.Resources[value].Type == "AWS::Serverless::Function"
		case "EventSourceMappingUUID": // its resource is made by SAM
			function, isOrders := strings.CutSuffix(value, "Orders")
			_, has := c.Resources[function].Properties.Events["Orders"]
			ok = ok && isOrders && has
		case "TableName":
			ok = ok && c.Resources[value].Type == "AWS::DynamoDB::Table"
		case "LogGroupName":
			ok = ok && c.Resources[value].Type == "AWS::Logs::LogGroup"
		}
	}
	if service := values["service"]; service != "" { // a metric of another queue than the function's has no data
		ok = ok && values["queue"] == strings.TrimSuffix(c.Resources[service].Properties.Events["Orders"].Properties.Queue, ".Arn")+".QueueName"
	}
	if !ok {
		c.problem("%s: %s: want resources of the dimensions' kinds", where, m)
	}
}

// emfMetrics are the names with which the code of package emf adds metrics to a line.
var emfMetrics = sync.OnceValue(func() (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../emf/line.go", nil, 0)
	if err != nil {
		panic(err)
	}
	add := func(e ast.Expr) {
		if literal, ok := e.(*ast.BasicLit); ok {
			name, _ := strconv.Unquote(literal.Value)
			names = append(names, name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n, ok := n.(*ast.CallExpr); ok {
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"add", "count", "seldom", "times"}, f.Sel.Name) {
				add(n.Args[0])
			}
		}
		return true
	})
	for _, o := range host.Outcomes {
		names = append(names, o.Metric)
	}
	slices.Sort(names)
	return slices.Compact(names)
})

// thresholds checks the numbers of alarms that follow from others.
func (c *checker) thresholds(queue string, q properties, timeout int) {
	of := strings.TrimSuffix(queue, "Queue")
	for name, want := range map[string]string{
		of + "SlowAlarm":     fmt.Sprint(timeout * 1_000 * 80 / 100), // ms
		of + "ExpiringAlarm": fmt.Sprint(q.MessageRetentionPeriod / 2),
	} {
		if got := c.Resources[name].Properties.Threshold; got != want {
			c.problem("%s: threshold is %s, want %s", name, got, want)
		}
	}
	receives, _ := q.RedrivePolicy.MaxReceiveCount.(int)
	if got := c.Parameters["AgeSeconds"].Default; got != q.VisibilityTimeout*receives {
		c.problem("AgeSeconds is %v, want visibility %d x maxReceiveCount %d", got, q.VisibilityTimeout, receives)
	}
	if minutes := c.Resources[of+"UnreadAlarm"].Properties.Periods; minutes*60 <= timeout {
		c.problem("%sUnreadAlarm: %d min are not longer than the timeout of %d s: none may begin before another invocation ends", of, minutes, timeout)
	}
}

// logging checks that Lambda does not drop the lines of package emf.
func (c *checker) logging(function string, f properties) {
	if level := cmp.Or(f.Logging.Level, c.Globals.Function.Logging.Level); !slices.Contains([]string{"INFO", "DEBUG", "TRACE"}, level) {
		c.problem("%s: application log level is %q: lines of metrics have INFO and would be dropped", function, level)
	}
}
