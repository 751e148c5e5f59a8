package report

import (
	"bytes"
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
