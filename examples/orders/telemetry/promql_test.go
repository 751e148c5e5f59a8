package telemetry

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// As much of PromQL as tells which metrics, labels and values an expression names.
var (
	selector   = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(by|on|ignoring|without)\s*\(([^)]*)\)`)
	window     = regexp.MustCompile(`\[[^\]]*\]|\boffset \w+`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][\w:]*\s*\(?`)
)

// functions and operators are what the expressions may call beside metrics.
var functions, operators = []string{"sum", "max", "min", "count", "rate", "increase", "histogram_quantile", "last_over_time"}, []string{"and", "or", "unless"}

// check returns what of an expression is not in the golden list.
func (s series) check(expr string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	known := map[string]bool{} // labels of its metrics
	use := func(metric string) {
		if s[metric] == nil {
			bad("no metric %s", metric)
		}
		for label := range s[metric] {
			known[label] = true
		}
	}
	rest := selector.ReplaceAllStringFunc(expr, func(text string) string {
		parts := selector.FindStringSubmatch(text)
		use(parts[1])
		for _, m := range matcher.FindAllStringSubmatch(parts[2], -1) {
			problems = append(problems, s.checkMatcher(parts[1], m[1], m[3])...)
		}
		return " "
	})
	var grouped []string
	rest = grouping.ReplaceAllStringFunc(rest, func(text string) string {
		grouped = append(grouped, strings.FieldsFunc(grouping.FindStringSubmatch(text)[2], func(r rune) bool { return r == ',' || r == ' ' })...)
		return " "
	})
	for _, word := range identifier.FindAllString(window.ReplaceAllString(rest, ""), -1) {
		called, ok := strings.CutSuffix(word, "(")
		if called = strings.TrimSpace(called); ok && slices.Contains(functions, called) || slices.Contains(operators, called) {
			continue
		}
		use(called)
	}
	for _, label := range grouped {
		if !known[label] {
			bad("no label %s of the metrics", label)
		}
	}
	if len(known) == 0 {
		bad("no metric in %s", expr)
	}
	return problems
}

// checkMatcher checks a label and its values. Those of a dashboard's variables, of jobs and of queues are the user's.
func (s series) checkMatcher(metric, label, values string) (problems []string) {
	known, ok := s[metric][label]
	if !ok {
		return []string{fmt.Sprintf("no label %s of %s", label, metric)}
	}
	if values == "" || strings.HasPrefix(values, "$") || label == "messaging_destination_name" {
		return nil
	}
	for _, value := range strings.Split(values, "|") {
		if !slices.Contains(known, value) {
			problems = append(problems, fmt.Sprintf("no %s=%s of %s", label, value, metric))
		}
	}
	return problems
}

func TestCheck(t *testing.T) {
	golden := readGolden(t)
	const good = `sum by (job, sqsonce_outcome) (rate(sqsonce_deliveries_total{job=~"$service", sqsonce_outcome=~"done|failed"}[5m] offset 1m)) > 0.5
		or max by (job) (sqsonce_worker_handlers_stuck)`
	if problems := golden.check(good); problems != nil {
		t.Errorf("%s: %q", good, problems)
	}
	for old, broken := range map[string]string{
		"sqsonce_deliveries_total":       "sqsonce_deliveries",
		"max by (job) (sqsonce_worker_h": "max by (job) (h",
		`sqsonce_outcome=~"done`:         `sqsonce_result=~"done`,
		`|failed`:                        `|broken`,
		"by (job, sqsonce_outcome)":      "by (job, sqsonce_limit)",
		"rate(":                          "speed(",
	} {
		if text := strings.Replace(good, old, broken, 1); len(golden.check(text)) == 0 {
			t.Errorf("%s: no problem", text)
		}
	}
	if len(golden.check("1 > 0")) == 0 {
		t.Error("an expression without a metric: no problem")
	}
	if len(golden) < 30 {
		t.Errorf("golden list of %q", slices.Sorted(maps.Keys(golden)))
	}
}

const rulesFolder = "../../../deploy/prometheus/"

type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	text := must.Get(os.ReadFile(rulesFolder + "rules.yaml"))(t)
	var file struct{ Groups []struct{ Rules []rule } }
	must.Do(t, yaml.Unmarshal(text, &file))
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) < 13 {
		t.Fatalf("%d rules: was the file understood?", len(rules))
	}
	return rules
}

var (
	runbookURL = regexp.MustCompile(`^https://github\.com/sqsonce/sqsonce/blob/main/docs/runbook\.md#[a-z-]+$`)
	usedLabel  = regexp.MustCompile(`\$labels\.(\w+)`)
)

// What promtool does not see: names that no metric has, labels that an alert has not, and alerts without an address or a test.
func TestRules(t *testing.T) {
	golden := readGolden(t)
	tests := must.Get(os.ReadFile(rulesFolder + "rules_test.yaml"))(t)
	for _, r := range readRules(t) {
		for _, problem := range golden.check(r.Expr) {
			t.Errorf("%s: %s", r.Alert, problem)
		}
		a := r.Annotations
		if a["summary"] == "" || a["description"] == "" || !runbookURL.MatchString(a["runbook_url"]) || r.Labels["severity"] == "" {
			t.Errorf("%s has no severity, summary, description or address of the runbook", r.Alert)
		}
		for _, label := range usedLabel.FindAllStringSubmatch(a["summary"]+a["description"], -1) {
			if by := grouping.FindString(r.Expr); !regexp.MustCompile(`\b` + label[1] + `\b`).MatchString(by) {
				t.Errorf("%s has no label %s", r.Alert, label[1])
			}
		}
		if !strings.Contains(string(tests), fmt.Sprintf(`alertname="%s"`, r.Alert)) {
			t.Errorf("no test in which %s fires", r.Alert)
		}
	}
}

func TestPromtool(t *testing.T) {
	promtool := testserver.Promtool(t)
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = rulesFolder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
