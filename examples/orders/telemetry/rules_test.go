package telemetry

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

const rulesFolder = "../../../deploy/prometheus/"

type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	text, err := os.ReadFile(rulesFolder + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
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
	tests, err := os.ReadFile(rulesFolder + "rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
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
