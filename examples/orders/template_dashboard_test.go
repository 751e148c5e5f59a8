package orders

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

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
