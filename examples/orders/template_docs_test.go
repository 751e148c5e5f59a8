package orders

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"gopkg.in/yaml.v3"
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
	const alarms, each, others = "alarms", "metrics of package emf that are in each line", "its other ones, if none is 0 in all of the month"
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
	if err := yaml.Unmarshal([]byte(readTemplate(t)), &c.template); err != nil {
		t.Fatal(err)
	}
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
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// number is what the pattern's group matches.
func number(t *testing.T, text, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
