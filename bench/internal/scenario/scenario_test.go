package scenario_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/bench/internal/report"
	"github.com/sqsonce/sqsonce/bench/internal/role"
	"github.com/sqsonce/sqsonce/bench/internal/scenario"
)

// TestMain is also the main function of the processes that the bench starts: they are this binary.
func TestMain(m *testing.M) {
	if role.Run() {
		return
	}
	os.Exit(m.Run())
}

// keys are the JSON keys of every row.
var keys = []string{
	"allocs_per_msg", "binary_mb", "client_cpu_us_per_msg", "connections", "contestant", "doubled", "dynamodb_requests_per_msg",
	"endpoint_cpu_us_per_msg", "hidden", "init_ms", "latency_ms", "max_rss_mb", "messages", "msg_per_s", "out_of_order", "scenario",
	"slots", "spread", "sqs_requests_per_msg", "undeleted", "write_units_per_msg",
}

// TestScenarios runs each scenario as a user would, only shorter, and checks the rows that it prints, except their times.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, s := range scenario.All {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if os.Getenv("EMULATORS") != "required" { // the peers take most of the time
				s.Contestants = slices.DeleteFunc(slices.Clone(s.Contestants), func(c scenario.Contestant) bool { return !strings.HasPrefix(c.Name, "sqsonce") })
			}
			var out, log bytes.Buffer
			b := &scenario.Bench{Size: scenario.Tiny, Log: &log}
			if err := b.Run(t.Context(), []scenario.Scenario{s}, report.JSON(&out)); err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			rows := decode(t, out.String())
			for _, c := range s.Contestants {
				row, ok := rows[c.Name]
				switch {
				case ok:
					check(t, s, scenario.Count(b, c), row)
				case !strings.Contains(log.String(), "SKIPPED "+s.Name+", "+c.Name):
					t.Errorf("%s has no row, and the log does not say why: %s", c.Name, log.String())
				case os.Getenv("EMULATORS") == "required":
					t.Errorf("%s did not run: %s", c.Name, log.String())
				default:
					t.Logf("%s did not run", c.Name)
				}
				delete(rows, c.Name)
			}
			for name := range rows {
				t.Errorf("row of %s, which does not take part", name)
			}
		})
	}
}

// decode reads the rows, by contestant.
func decode(t *testing.T, out string) map[string]report.Row {
	t.Helper()
	rows := map[string]report.Row{}
	for line := range strings.Lines(out) {
		var names map[string]any
		var row report.Row
		if err := json.Unmarshal([]byte(line), &names); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, keys) {
			t.Errorf("keys %v, want %v", got, keys)
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		rows[row.Contestant] = row
	}
	return rows
}

func check(t *testing.T, s scenario.Scenario, count int, r report.Row) {
	t.Helper()
	want := func(name string, got *float64, want float64) {
		t.Helper()
		if got == nil || *got != want {
			t.Errorf("%s, %s: %s is %s, want %v", s.Name, r.Contestant, name, show(got), want)
		}
	}
	none := func(name string, got *float64) {
		t.Helper()
		if got != nil && *got != 0 {
			t.Errorf("%s, %s: %s is %s, want 0", s.Name, r.Contestant, name, show(got))
		}
	}
	if r.Scenario != s.Name {
		t.Errorf("%s: row of %s", s.Name, r.Scenario)
	}
	ours := strings.HasPrefix(r.Contestant, "sqsonce")
	if ours {
		none("doubled", r.Doubled)
		none("hidden", r.Hidden)
		none("undeleted", r.Undeleted)
		none("out of order", r.OutOfOrder)
	}
	family, _, _ := strings.Cut(s.Name, "/")
	switch family {
	case "worker", "dedup", "fifo", "outbox", "bodies", "memory", "duplicates":
		want("messages", r.Messages, float64(count))
		if family != "fifo" && family != "outbox" && (r.EndpointCPU == nil || *r.EndpointCPU <= 0) {
			t.Errorf("%s, %s: the endpoint's CPU is %s", s.Name, r.Contestant, show(r.EndpointCPU))
		}
	case "lambda":
		if r.Messages == nil || *r.Messages == 0 {
			t.Errorf("%s, %s: no messages", s.Name, r.Contestant)
		}
	case "cold":
		if r.Binary == nil || *r.Binary < 1 || r.Init == nil || *r.Init <= 0 {
			t.Errorf("%s: binary %s, init %s", r.Contestant, show(r.Binary), show(r.Init))
		}
	case "idle":
		want("messages", r.Messages, 1)
	case "slow":
		if ours {
			want("messages", r.Messages, 20)
		}
	}
	if ours && family == "outbox" { // 4 for the transaction, 2 for the delete
		want("write units", r.WriteUnits, 6)
	}
	if strings.HasSuffix(r.Contestant, "+ddb") && family == "dedup" {
		want("write units", r.WriteUnits, 2)
	}
}

func show(v *float64) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
