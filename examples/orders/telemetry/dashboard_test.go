package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

const dashboardFile = "../../../deploy/grafana/sqsonce.json"

type dashboard struct {
	Description string
	Templating  struct{ List []variable }
	Panels      []panel
}

type variable struct {
	Name, Type string
	Definition string
	Datasource struct{ UID string }
	// Query is an object, and Definition its text, where Type is query. Of CloudWatch it is a metricQuery, without a Definition.
	Query json.RawMessage
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Datasource               struct{ UID string }
	Targets                  []target
}

// target has an Expr of Prometheus, or a metric of CloudWatch.
type target struct {
	RefID, Expr string
	Datasource  struct{ UID string }
	metricQuery
	Statistic, Region, QueryMode string
	Dimensions                   map[string]string
}

// metricQuery is what targets and variables of CloudWatch have in common.
type metricQuery struct{ Namespace, MetricName, DimensionKey string }

// queueMetrics are metrics of AWS/SQS with the dimension QueueName.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
var queueMetrics = []string{
	"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
	"ApproximateNumberOfMessagesVisible", "NumberOfEmptyReceives", "NumberOfMessagesDeleted", "NumberOfMessagesReceived", "NumberOfMessagesSent",
	// Of fair queues.
	"ApproximateAgeOfOldestMessageInQuietGroups", "ApproximateNumberOfMessagesDelayedInQuietGroups",
	"ApproximateNumberOfMessagesNotVisibleInQuietGroups", "ApproximateNumberOfMessagesVisibleInQuietGroups", "ApproximateNumberOfNoisyGroups",
}

func (q metricQuery) known() bool {
	return q.Namespace == "AWS/SQS" && slices.Contains(queueMetrics, q.MetricName)
}

const prometheusSource, cloudWatchSource = "${datasource}", "${cloudwatch}"

// check returns what is wrong with a target, and the text of its query.
func (q target) check(golden series) (problems []string, expression string) {
	if q.Datasource.UID == prometheusSource {
		return golden.check(q.Expr), q.Expr
	}
	queue := q.Dimensions["QueueName"]
	if q.Datasource.UID != cloudWatchSource || q.Expr != "" || !q.known() || len(q.Dimensions) != 1 || q.Statistic == "" || q.Region == "" || q.QueryMode != "Metrics" {
		problems = append(problems, fmt.Sprintf("neither a query of Prometheus nor a metric of a queue in CloudWatch: %+v", q))
	}
	return problems, queue
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text := must.Get(os.ReadFile(dashboardFile))(t)
	var d dashboard
	must.Do(t, json.NewDecoder(bytes.NewReader(text)).Decode(&d))
	if len(d.Panels) < 20 {
		t.Fatalf("%d panels: was the file understood?", len(d.Panels))
	}
	return d
}

func TestDashboard(t *testing.T) {
	d, golden := readDashboard(t), readGolden(t)
	ids := map[int]string{}
	var expressions []string
	for i, p := range d.Panels {
		if other := ids[p.ID]; p.ID == 0 || other != "" {
			t.Errorf("panel %q has the ID %d, and so has %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		for _, q := range d.Panels[:i] {
			if p.overlaps(q) {
				t.Errorf("panel %q overlaps %q", p.Title, q.Title)
			}
		}
		if g := p.GridPos; g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("panel %q is at %+v, and a dashboard has 24 columns", p.Title, g)
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q has no title, description, unit, target or data source of the variable", p.ID, p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" || target.Datasource != p.Datasource {
				t.Errorf("panel %q, target %q: not its own refId, or another data source", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			problems, expression := target.check(golden)
			for _, problem := range problems {
				t.Errorf("panel %q: %s", p.Title, problem)
			}
			expressions = append(expressions, expression)
		}
	}
	checkVariables(t, d, golden, strings.Join(expressions, "\n"))
}

// Each metric of a limiter is on the dashboard, apart from those that say how much it does.
func TestDashboardOfLimits(t *testing.T) {
	golden := readGolden(t)
	text := string(must.Get(os.ReadFile(dashboardFile))(t))
	found := 0
	for name := range golden {
		if !strings.HasPrefix(name, "sqsonce_limit_") || name == "sqsonce_limit_calls_total" || name == "sqsonce_limit_keys" {
			continue
		}
		if found++; !strings.Contains(text, name+"{") {
			t.Errorf("no panel of %s", name)
		}
	}
	if found < 10 {
		t.Errorf("%d metrics of a limiter: was the list understood?", found)
	}
}

func (p panel) overlaps(q panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	used        = regexp.MustCompile(`\$(\w+)`)
)

// checkVariables checks that each variable asks for what there is, is used, and that no other is used.
func checkVariables(t *testing.T, d dashboard, golden series, expressions string) {
	names := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		if names = append(names, v.Name); v.Type != "query" {
			continue
		}
		if v.Datasource.UID == cloudWatchSource {
			var q metricQuery
			must.Do(t, json.Unmarshal(v.Query, &q))
			if !q.known() || q.DimensionKey != "QueueName" || !strings.Contains(expressions, "$"+v.Name) {
				t.Errorf("variable %s is not used, or is of no metric of a queue: %s", v.Name, v.Query)
			}
			continue
		}
		parts := labelValues.FindStringSubmatch(v.Definition)
		if parts == nil || !bytes.Contains(v.Query, []byte(strings.ReplaceAll(v.Definition, `"`, `\"`))) {
			t.Errorf("variable %s: query %s, definition %s", v.Name, v.Query, v.Definition)
			continue
		}
		for _, problem := range golden.check("count by (" + parts[2] + ") (" + parts[1] + ")") {
			t.Errorf("variable %s: %s", v.Name, problem)
		}
		if !strings.Contains(expressions, "$"+v.Name) || !strings.Contains(d.Description, "service is the label job") {
			t.Errorf("variable %s is not used, or not described", v.Name)
		}
	}
	for _, u := range used.FindAllStringSubmatch(expressions, -1) {
		if !slices.Contains(names, u[1]) {
			t.Errorf("no variable %s", u[1])
		}
	}
	for _, want := range []string{"datasource", "cloudwatch", "service", "queue", "consumer", "fair_queue"} {
		if !slices.Contains(names, want) {
			t.Errorf("no variable %s", want)
		}
	}
}
