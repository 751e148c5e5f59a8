package orders

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// queueAlarms are the alarms of a queue and its function, Q before their names being what the names of its resources begin with:
// section of the runbook, condition, for how many of how many minutes, metrics.
var queueAlarms = map[string]string{
	"QDLQAlarm": "dlq: visible + hidden > 0, 1 of 1; visible = Maximum AWS/SQS ApproximateNumberOfMessagesVisible QueueName QDLQ.QueueName" +
		"; hidden = Maximum AWS/SQS ApproximateNumberOfMessagesNotVisible QueueName QDLQ.QueueName",
	"QAgeAlarm":      "age: Maximum AWS/SQS ApproximateAgeOfOldestMessage QueueName QQueue.QueueName > AgeSeconds, 3 of 5",
	"QExpiringAlarm": "expiring: Maximum AWS/SQS ApproximateAgeOfOldestMessage QueueName QQueue.QueueName > 172800, 1 of 1",
	"QUnreadAlarm": "unread: IF(visible > 0 AND FILL(invoked, 0) == 0, 1, 0) > 0, 5 of 5; visible = Maximum AWS/SQS ApproximateNumberOfMessagesVisible QueueName QQueue.QueueName" +
		"; invoked = Sum AWS/Lambda InvokedEventCount EventSourceMappingUUID QFunctionOrders",
	"QErrorsAlarm":    "function-errors: Sum AWS/Lambda Errors FunctionName QFunction > 0, 3 of 5",
	"QThrottlesAlarm": "throttles: Sum AWS/Lambda Throttles FunctionName QFunction > 0, 3 of 5",
	"QSlowAlarm":      "slow: p99 AWS/Lambda Duration FunctionName QFunction > 24000, 3 of 5",
	"QEMFAlarm": "emf: SUM(FILL(METRICS(), 0)) > 0, 1 of 1; invalid = Sum AWS/Logs EMFValidationErrors LogGroupName QLogGroup" +
		"; unreadable = Sum AWS/Logs EMFParsingErrors LogGroupName QLogGroup",
	"QUnavailableAlarm": "unavailable: Sum sqsonce Unavailable service QFunction queue QQueue.QueueName > 0, 3 of 5",
	"QStuckAlarm":       "stuck-handler: Sum sqsonce Abandoned service QFunction queue QQueue.QueueName > 0, 1 of 1",
	"QStoreErrorsAlarm": "store-errors: 100 * errors / records > StoreErrorsPercent, 3 of 5; errors = Sum sqsonce StoreErrors service QFunction queue QQueue.QueueName" +
		"; records = Sum sqsonce Records service QFunction queue QQueue.QueueName",
	"QLeaseLostAlarm": "lease-lost: Sum sqsonce LeaseLost service QFunction queue QQueue.QueueName > 0, 3 of 15",
	"QTakeoversAlarm": "takeovers: 100 * takeovers / records > TakeoversPercent, 3 of 15; takeovers = Sum sqsonce Takeovers service QFunction queue QQueue.QueueName" +
		"; records = Sum sqsonce Records service QFunction queue QQueue.QueueName",
	"QNotCompletedAlarm": "not-completed: Sum sqsonce NotCompleted service QFunction queue QQueue.QueueName > 0, 1 of 1",
}

// otherAlarms are the rest. Messages of a FIFO queue that are behind a hidden one of their group are visible too.
var otherAlarms = map[string]string{
	"OrdersFifoUnreadAlarm": "unread: IF(visible > 0 AND hidden == 0 AND FILL(invoked, 0) == 0, 1, 0) > 0, 5 of 5" +
		"; visible = Maximum AWS/SQS ApproximateNumberOfMessagesVisible QueueName OrdersFifoQueue.QueueName" +
		"; hidden = Maximum AWS/SQS ApproximateNumberOfMessagesNotVisible QueueName OrdersFifoQueue.QueueName" +
		"; invoked = Sum AWS/Lambda InvokedEventCount EventSourceMappingUUID OrdersFifoFunctionOrders",
	"DedupTableAlarm": "table: SUM(FILL(METRICS(), 0)) > 0, 3 of 5" +
		"; reads = Sum AWS/DynamoDB ReadThrottleEvents TableName DedupTable; writes = Sum AWS/DynamoDB WriteThrottleEvents TableName DedupTable" +
		"; getItem = Sum AWS/DynamoDB SystemErrors TableName DedupTable Operation GetItem" +
		"; updateItem = Sum AWS/DynamoDB SystemErrors TableName DedupTable Operation UpdateItem" +
		"; batchExecuteStatement = Sum AWS/DynamoDB SystemErrors TableName DedupTable Operation BatchExecuteStatement" +
		"; transactWriteItems = Sum AWS/DynamoDB SystemErrors TableName DedupTable Operation TransactWriteItems",
	"LedgerTableAlarm": "table: SUM(FILL(METRICS(), 0)) > 0, 3 of 5" +
		"; reads = Sum AWS/DynamoDB ReadThrottleEvents TableName LedgerTable; writes = Sum AWS/DynamoDB WriteThrottleEvents TableName LedgerTable" +
		"; transactWriteItems = Sum AWS/DynamoDB SystemErrors TableName LedgerTable Operation TransactWriteItems",
	"OutboxAgeAlarm":    "outbox-age: Maximum sqsonce OutboxOldest queue OrdersFifoQueue > 300, 5 of 5, or no data",
	"OutboxHaltedAlarm": "outbox-halted: Maximum sqsonce OutboxHalted queue OrdersFifoQueue > 0, 1 of 1",
	"OutboxStreamAlarm": "outbox-stream: Maximum AWS/Lambda IteratorAge FunctionName OutboxRelayFunction > 300000, 3 of 5",
	"OutboxErrorsAlarm": "outbox-errors: Sum AWS/Lambda Errors FunctionName OutboxRelayFunction > 0, 3 of 5",
	"OutboxTableAlarm": "table: SUM(FILL(METRICS(), 0)) > 0, 3 of 5" +
		"; reads = Sum AWS/DynamoDB ReadThrottleEvents TableName OutboxTable; writes = Sum AWS/DynamoDB WriteThrottleEvents TableName OutboxTable" +
		"; query = Sum AWS/DynamoDB SystemErrors TableName OutboxTable Operation Query" +
		"; transactWriteItems = Sum AWS/DynamoDB SystemErrors TableName OutboxTable Operation TransactWriteItems",
}

func wantAlarms() map[string]string {
	want := map[string]string{}
	for name, text := range queueAlarms {
		for _, queue := range []string{"Orders", "OrdersFifo"} {
			want[queue+name[1:]] = regexp.MustCompile(`\bQ([A-Z])`).ReplaceAllString(text, queue+"$1")
		}
	}
	maps.Copy(want, otherAlarms)
	return want
}

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
	Comparison        string       `yaml:"ComparisonOperator"`
	TreatMissingData  string       `yaml:"TreatMissingData"`
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

// String is the alarm as in queueAlarms, without its section.
func (a alarm) String() string {
	condition, metrics := "", ""
	for _, q := range a.Metrics {
		if q.Expression != "" {
			condition += q.Expression
		} else {
			metrics += fmt.Sprintf("; %s = %s %s", q.ID, q.Stat.Stat, q.Stat.Metric)
		}
	}
	if a.Name != "" {
		condition += cmp.Or(a.Statistic, a.ExtendedStatistic) + " " + a.metric.String()
	}
	minutes := fmt.Sprintf("%d of %d", cmp.Or(a.Datapoints, a.Periods), a.Periods)
	if a.TreatMissingData == "breaching" {
		minutes += ", or no data"
	}
	return fmt.Sprintf("%s > %s, %s%s", condition, a.Threshold, minutes, metrics)
}

// alarms compares the alarms with those that are wanted.
func (c *checker) alarms(want map[string]string) {
	want = maps.Clone(want)
	for _, name := range c.names("AWS::CloudWatch::Alarm") {
		a := c.Resources[name].Properties.alarm
		section := runbook.FindStringSubmatch(a.Description)
		if section == nil || len(a.Description) > 1_024 {
			c.problem("%s: description is %q, want one sentence and the address of a section of the runbook", name, a.Description)
			continue
		}
		if got := section[2] + ": " + a.String(); got != want[name] {
			c.problem("%s is\n\t%s\nwant\n\t%s", name, got, want[name])
		}
		delete(want, name)
		if a.Comparison != "GreaterThanThreshold" || !slices.Contains([]string{"notBreaching", "breaching"}, a.TreatMissingData) || fmt.Sprint(a.Actions) != "[HasAlarmTopic [AlarmTopicArn] AWS::NoValue]" {
			c.problem("%s: comparison %q, missing data %q, actions %v", name, a.Comparison, a.TreatMissingData, a.Actions)
		}
		c.query(name, a)
		for _, m := range a.metrics() {
			c.metric(name, m)
		}
	}
	for name := range want {
		c.problem("no alarm %s", name)
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
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"add", "count", "seldom", "times"}, f.Sel.Name) {
				add(n.Args[0])
			}
		case *ast.CompositeLit: // of outcomes: a name and a kind
			if len(n.Elts) == 2 {
				add(n.Elts[0])
			}
		}
		return true
	})
	return names
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
