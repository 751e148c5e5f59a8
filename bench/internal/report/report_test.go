package report

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	round := func(rate, doubled float64) Row {
		return Row{Scenario: "s", Contestant: "c", Rate: &rate, Doubled: &doubled}
	}
	r := Median([]Row{round(100, 0), round(300, 1), round(110, 0)})
	if *r.Rate != 110 {
		t.Errorf("rate %v, want the median 110", *r.Rate)
	}
	if *r.Doubled != 1 {
		t.Errorf("doubled %v, want 1: the worst round is shown", *r.Doubled)
	}
	if got, want := *r.Spread, 200.0/110; got != want {
		t.Errorf("spread %v, want %v", got, want)
	}
	if r.CPU != nil {
		t.Errorf("CPU %v, want none", *r.CPU)
	}
	if r := Median([]Row{round(100, 0)}); r.Spread != nil {
		t.Errorf("spread of one round is %v, want none", *r.Spread)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := Table(&out)
	for _, r := range []Row{
		{Scenario: "one", Contestant: "a", Rate: Number(12.6)},
		{Scenario: "one", Contestant: "b", CPU: Number(0.25)},
		{Scenario: "two", Contestant: "a", Doubled: Number(0)},
	} {
		must.Do(t, p.Print(r))
	}
	must.Do(t, p.Close())
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := "one msg/s CPU us/msg|a 13 -|b - 0.2||two doubled|a 0||"
	if s := strings.Join(got, "|"); s != want && s+"|" != want {
		t.Errorf("got %q, want %q", s, want)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	ms := func(v float64) *float64 { return &v }
	rows := []Row{
		{Scenario: "worker", Contestant: "floor+http", Latency: ms(5), Rate: Number(100), CPU: Number(10)},
		{Scenario: "worker", Contestant: "sqsonce", Latency: ms(5), Rate: Number(82), CPU: Number(13.1), Allocs: Number(95)},
		{Scenario: "worker", Contestant: "floor+http", Latency: ms(15), Rate: Number(100), CPU: Number(10)},
		{Scenario: "worker", Contestant: "sqsonce", Latency: ms(15), Rate: Number(81), CPU: Number(13), Allocs: Number(95.1)},
		{Scenario: "worker", Contestant: "sqsonce GOGC=400", Latency: ms(5), Rate: Number(1)},
		{Scenario: "dedup", Contestant: "sqsonce+ddb", Latency: ms(5), Rate: Number(1), Allocs: Number(160)},
		{Scenario: "lambda/10", Contestant: "hand", CPU: Number(50)},
		{Scenario: "lambda/10", Contestant: "sqsonce", CPU: Number(52.1)},
		{Scenario: "lambda/1000", Contestant: "hand", CPU: Number(10)},
		{Scenario: "lambda/1000", Contestant: "sqsonce", CPU: Number(10.5)},
	}
	missed, unknown := Judge(rows)
	if want := []string{
		"worker, sqsonce: msg/s, floor+http at 15 ms: 0.81, target at least 0.82",
		"worker, sqsonce: CPU us/msg, floor+http at 5 ms: 1.31, target at most 1.3",
		"worker, sqsonce: allocs/msg at 15 ms: 95.10, target at most 95",
		"lambda/10, sqsonce: CPU us/invocation, hand: 21.00, target at most 20",
	}; !slices.Equal(missed, want) {
		t.Errorf("missed %q, want %q", missed, want)
	}
	if want := []string{"dedup, sqsonce+ddb: msg/s, floor at 5 ms", "dedup, sqsonce+ddb: CPU us/msg, floor at 5 ms"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown %q, want %q", unknown, want)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	var file, out bytes.Buffer
	kept := &Kept{Printer: JSON(&file)}
	before := Row{Scenario: "s", Contestant: "a", Latency: Number(5), Slots: Number(7), Rate: Number(100), CPU: Number(8), Allocs: Number(50)}
	must.Do(t, kept.Print(before))
	rows := must.Get(Read(&file))(t)
	if !reflect.DeepEqual(kept.Rows, rows) {
		t.Fatalf("read %+v, printed %+v", rows, kept.Rows)
	}
	now := before
	now.Rate, now.Allocs = Number(150), Number(40)
	other := Row{Scenario: "s", Contestant: "b", Latency: Number(5), Rate: Number(1)}
	must.Do(t, Compare(&out, []Row{now, other}, rows))
	if got, want := strings.Join(strings.Fields(out.String()), " "), "s ms msg/s CPU us/msg allocs/msg a 5 1.50 1.00 0.80 b 5 - - -"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := Read(strings.NewReader("{} worker")); err == nil {
		t.Error("read what is no row")
	}
}
