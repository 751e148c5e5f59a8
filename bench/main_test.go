package main

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-scenario", "nonsense"})
	if err == nil || !strings.Contains(err.Error(), "worker, dedup, lambda, cold, fifo, outbox, slow, stop, idle, duplicates, bodies, memory") {
		t.Errorf("got %v, want an error that names the scenarios", err)
	}
}

// Pages are made of rows alone: each row has its place, and a picture without a row is an error that leaves the files as they were.
func TestPages(t *testing.T) {
	t.Parallel()
	rate := map[string]float64{"sqsonce": 35388, "gocloud": 20116, "hand": 6926, "sqs-consumer": 4510, "sqsonce+ddb": 14463, "hand+ddb": 2439, "sqs-consumer+powertools": 444}
	var rows strings.Builder
	for _, contestant := range slices.Sorted(maps.Keys(rate)) {
		scenario, units := "worker", "null"
		if strings.Contains(contestant, "+") {
			scenario, units = "dedup", "2"
		}
		fmt.Fprintf(&rows, `{"scenario":%q,"contestant":%q,"latency_ms":5,"msg_per_s":%v,"client_cpu_us_per_msg":30,"sqs_requests_per_msg":0.2,`+
			`"write_units_per_msg":%s,"allocs_per_msg":96,"run":"a Tuesday"}`+"\n", scenario, contestant, rate[contestant], units)
	}
	dir := t.TempDir()
	for _, sub := range []string{"bench", "docs/images"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	from := filepath.Join(dir, "run.jsonl")
	must.Do(t, os.WriteFile(from, []byte(rows.String()), 0o644))
	if err := run(t.Context(), []string{"-from", from, "-pages", dir}); err == nil || !strings.Contains(err.Error(), "allocs/msg at 5 ms: 96.00, target at most 95") {
		t.Errorf("%v: want the target that is missed", err)
	}
	for file, want := range map[string]string{
		"bench/rows.jsonl": `"msg_per_s":14463`, "bench/RESULTS.md": "**96.00, missed**",
		"docs/images/speed.svg": ">35,400<", "docs/images/cost.svg": ">1.33<",
	} {
		got := string(must.Get(os.ReadFile(filepath.Join(dir, file)))(t))
		if !strings.Contains(got, want) || !strings.Contains(got, "a Tuesday") {
			t.Errorf("%s lacks %s or the run:\n%s", file, want, got)
		}
		if strings.HasSuffix(file, ".svg") {
			must.Do(t, xml.Unmarshal([]byte(got), new(any)))
		}
	}
	must.Do(t, os.WriteFile(from, []byte(strings.Replace(rows.String(), "gocloud", "other", 1)), 0o644))
	if err := run(t.Context(), []string{"-from", from, "-pages", dir}); err == nil || !strings.Contains(err.Error(), "gocloud") {
		t.Errorf("without a row: %v", err)
	}
	if got := string(must.Get(os.ReadFile(filepath.Join(dir, "bench/rows.jsonl")))(t)); strings.Contains(got, "other") {
		t.Error("rows were written although a picture lacks one")
	}
}
