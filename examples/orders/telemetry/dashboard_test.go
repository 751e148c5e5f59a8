package telemetry

import (
	"bytes"
	"encoding/json"
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
	// Query is an object, and Definition its text, where Type is query.
	Query json.RawMessage
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Datasource               struct{ UID string }
	Targets                  []struct {
		RefID, Expr string
		Datasource  struct{ UID string }
	}
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
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q has no title, description, unit, target or data source of the variable", p.ID, p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q, target %q: not its own refId, or another data source", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			for _, problem := range golden.check(target.Expr) {
				t.Errorf("panel %q: %s", p.Title, problem)
			}
			expressions = append(expressions, target.Expr)
		}
	}
	checkVariables(t, d, golden, strings.Join(expressions, "\n"))
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
	for _, want := range []string{"datasource", "service", "queue", "consumer"} {
		if !slices.Contains(names, want) {
			t.Errorf("no variable %s", want)
		}
	}
}
