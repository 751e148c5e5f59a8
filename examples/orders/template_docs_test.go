package orders

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/sqsonce/sqsonce/internal/must"
)

// docs/deploy.md has a row for each section of the runbook that an alarm of template.yaml names, with its minutes, and no other.
func TestAlarmsInDocs(t *testing.T) {
	var want, got []string
	for _, a := range templateAlarms(t) {
		if m := runbook.FindStringSubmatch(a.Description); m != nil {
			want = append(want, fmt.Sprintf("%[1]s runbook.md#%[1]s: %[2]d of %[3]d", m[2], cmp.Or(a.Datapoints, a.Periods), a.Periods))
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| \[(.+)\]\((.+)\) \| .+ \| (\d+ of \d+) \|$`).FindAllStringSubmatch(readDoc(t, "deploy.md"), -1) {
		got = append(got, m[1]+" "+m[2]+": "+m[3])
	}
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("the page has\n%q, want\n%q", got, want)
	}
}

// The counts of docs/cost.md are those of template.yaml, and its dollars follow from them.
func TestCloudWatchCost(t *testing.T) {
	text := readDoc(t, "cost.md")
	const alarms, each, others = "alarms", "metrics of package emf in each line", "its other metrics, if all of them occur in a month"
	const relay = "metrics of the relay's lines"
	count := func(row string) int { return int(number(t, text, `(?m)^\| `+row+` \| ([0-9]+) \|`)) }
	for row, price := range map[string]string{alarms: "A", each: "M", others: "M", relay: "M"} {
		got, want := number(t, text, `(?m)^\| `+row+` \| [0-9]+ \| ([0-9.]+) \|`), float64(count(row))*number(t, text, `(?m)^\| `+price+` \| ([0-9.]+) \|`)
		if math.Abs(got-want) > 0.005 {
			t.Errorf("%s: the page says %.2f dollars, want %.2f", row, got, want)
		}
	}
	metrics := 0
	for _, a := range templateAlarms(t) {
		metrics += len(a.metrics())
	}
	if got := count(alarms); got != metrics {
		t.Errorf("alarms: the page says %d metrics, want %d", got, metrics)
	}
	if got, want := count(relay), len(parsedTemplate(t).filtered()); got != want {
		t.Errorf("the relay: the page says %d metrics, want %d", got, want)
	}
	if got, want := count(each)+count(others), 2*len(emfMetrics()); got != want {
		t.Errorf("package emf: the page says %d metrics, want %d for two functions", got, want)
	}
}

func parsedTemplate(t *testing.T) *checker {
	t.Helper()
	var c checker
	must.Do(t, yaml.Unmarshal([]byte(readTemplate(t)), &c.template))
	return &c
}

func templateAlarms(t *testing.T) (all []alarm) {
	t.Helper()
	c := parsedTemplate(t)
	for _, name := range c.names("AWS::CloudWatch::Alarm") {
		all = append(all, c.Resources[name].Properties.alarm)
	}
	return all
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile("../../docs/" + name))(t))
}

// number is what the pattern's group matches.
func number(t *testing.T, text, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	return must.Get(strconv.ParseFloat(m[1], 64))(t)
}

// widget is one of a dashboard.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
type widget struct {
	Type                string
	X, Y, Width, Height int
	Properties          struct {
		Title, Region, Stat string
		Period              int
		Metrics             [][]any  // namespace, name, dimensions and their values, options
		Alarms              []string // ARNs
	}
}

var variable = regexp.MustCompile(`\$\{([^}]+)\}`) // of !Sub

func (c *checker) dashboard() {
	var body struct{ Widgets []widget }
	text := variable.ReplaceAllString(c.Resources["Dashboard"].Properties.DashboardBody, "$1")
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		c.problem("Dashboard: %v", err)
		return
	}
	var alarms, shown []string
	for _, w := range body.Widgets {
		alarms = append(alarms, w.Properties.Alarms...)
		for _, row := range w.Properties.Metrics {
			m := metricOf(row)
			c.metric("Dashboard: "+w.Properties.Title, m)
			shown = append(shown, m.String())
		}
	}
	c.shows(alarms, shown)
}

// metricOf returns the metric of a row of a widget.
func metricOf(row []any) (m metric) {
	var words []string
	for _, v := range row {
		if word, ok := v.(string); ok { // the options are an object
			words = append(words, word)
		}
	}
	if len(words) < 2 || len(words)%2 != 0 {
		return m
	}
	m.Namespace, m.Name = words[0], words[1]
	for pair := range slices.Chunk(words[2:], 2) {
		m.Dimensions = append(m.Dimensions, dimension{pair[0], pair[1]})
	}
	return m
}

// shows checks that the dashboard has each alarm, each metric of an alarm, and all that a function says of itself.
func (c *checker) shows(alarms, metrics []string) {
	for _, name := range c.names("AWS::CloudWatch::Alarm") {
		if !slices.Contains(alarms, name+".Arn") {
			c.problem("Dashboard: %s is not on it", name)
		}
		for _, m := range c.Resources[name].Properties.alarm.metrics() {
			if !slices.Contains(metrics, m.String()) {
				c.problem("Dashboard: %s of %s is not on it", m, name)
			}
		}
	}
	for _, name := range c.names("AWS::Serverless::Function") {
		if _, handles := c.Resources[name].Properties.Events["Orders"]; !handles {
			continue
		}
		queue := resource(c.Resources[name].Properties.Events["Orders"].Properties.Queue)
		for _, m := range emfMetrics() {
			if row := "sqsonce " + m + " service " + name + " queue " + queue + ".QueueName"; !slices.Contains(metrics, row) {
				c.problem("Dashboard: %s is not on it", row)
			}
		}
	}
}

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
