// Package report is what a run prints: a row for each contestant of each scenario, as a line of JSON or in a table.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Row is what one contestant did in one scenario. A nil figure does not apply.
type Row struct {
	Scenario    string   `json:"scenario"`
	Contestant  string   `json:"contestant"`
	Latency     *float64 `json:"latency_ms"`
	Slots       *float64 `json:"slots"`
	Messages    *float64 `json:"messages"`
	Rate        *float64 `json:"msg_per_s"`
	SQS         *float64 `json:"sqs_requests_per_msg"`
	DynamoDB    *float64 `json:"dynamodb_requests_per_msg"`
	WriteUnits  *float64 `json:"write_units_per_msg"`
	CPU         *float64 `json:"client_cpu_us_per_msg"`
	EndpointCPU *float64 `json:"endpoint_cpu_us_per_msg"`
	Allocs      *float64 `json:"allocs_per_msg"`
	Conns       *float64 `json:"connections"`
	RSS         *float64 `json:"max_rss_mb"`
	Binary      *float64 `json:"binary_mb"`
	Init        *float64 `json:"init_ms"`
	Doubled     *float64 `json:"doubled"`
	Hidden      *float64 `json:"hidden"`
	Undeleted   *float64 `json:"undeleted"`
	OutOfOrder  *float64 `json:"out_of_order"`
	Spread      *float64 `json:"spread"`
	// Run is when and on which machine the row was measured.
	Run string `json:"run,omitempty"`
}

// Number returns a figure that applies.
func Number[T ~int | ~int64 | ~float64](v T) *float64 {
	f := float64(v)
	return &f
}

// figure is a column of numbers.
type figure struct {
	name string
	of   func(*Row) **float64
	// worst shows the highest of the rounds, not the median: what went wrong in one of three rounds must be seen.
	worst bool
	// places is the number of decimal places in the table.
	places int
}

var figures = []figure{
	{"ms", func(r *Row) **float64 { return &r.Latency }, false, 0},
	{"slots", func(r *Row) **float64 { return &r.Slots }, false, 0},
	{"messages", func(r *Row) **float64 { return &r.Messages }, false, 0},
	{"msg/s", func(r *Row) **float64 { return &r.Rate }, false, 0},
	{"spread", func(r *Row) **float64 { return &r.Spread }, false, 2},
	{"SQS/msg", func(r *Row) **float64 { return &r.SQS }, false, 3},
	{"DDB/msg", func(r *Row) **float64 { return &r.DynamoDB }, false, 3},
	{"WRU/msg", func(r *Row) **float64 { return &r.WriteUnits }, false, 2},
	{"CPU us/msg", func(r *Row) **float64 { return &r.CPU }, false, 1},
	{"endpoint", func(r *Row) **float64 { return &r.EndpointCPU }, false, 1},
	{"allocs/msg", func(r *Row) **float64 { return &r.Allocs }, false, 1},
	{"conns", func(r *Row) **float64 { return &r.Conns }, false, 0},
	{"RSS MB", func(r *Row) **float64 { return &r.RSS }, true, 0},
	{"binary MB", func(r *Row) **float64 { return &r.Binary }, false, 1},
	{"init ms", func(r *Row) **float64 { return &r.Init }, false, 1},
	{"doubled", func(r *Row) **float64 { return &r.Doubled }, true, 0},
	{"hidden", func(r *Row) **float64 { return &r.Hidden }, true, 0},
	{"undeleted", func(r *Row) **float64 { return &r.Undeleted }, true, 0},
	{"out of order", func(r *Row) **float64 { return &r.OutOfOrder }, true, 0},
}

// Median returns one row for the rounds of a contestant: of each figure the median, or the highest where figure.worst
// says so. Its spread is the difference between the fastest and the slowest round, divided by the median rate.
func Median(rounds []Row) Row {
	out := rounds[0]
	for _, f := range figures {
		*f.of(&out) = nil
		var values []float64
		for i := range rounds {
			if v := *f.of(&rounds[i]); v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		if f.worst {
			*f.of(&out) = Number(values[len(values)-1])
		} else {
			*f.of(&out) = Number(middle(values))
		}
	}
	out.Spread = spread(rounds)
	return out
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is nil for a single round.
func spread(rounds []Row) *float64 {
	var rates []float64
	for _, r := range rounds {
		if r.Rate != nil {
			rates = append(rates, *r.Rate)
		}
	}
	if len(rates) < 2 {
		return nil
	}
	slices.Sort(rates)
	m := middle(rates)
	if m == 0 {
		return nil
	}
	return Number((rates[len(rates)-1] - rates[0]) / m)
}

// Printer prints rows. It gets each row as soon as it is measured.
type Printer interface {
	Print(Row) error
	// Close prints the rows that Print has not printed yet.
	Close() error
}

// Print prints rows that are known.
func Print(p Printer, rows []Row) error {
	for _, r := range rows {
		if err := p.Print(r); err != nil {
			return err
		}
	}
	return nil
}

// JSON prints each row as a line with a JSON object.
func JSON(w io.Writer) Printer { return jsonPrinter{json.NewEncoder(w)} }

type jsonPrinter struct{ *json.Encoder }

func (p jsonPrinter) Print(r Row) error { return p.Encode(r) }
func (p jsonPrinter) Close() error      { return nil }

// Table prints a table for each scenario when all its rows are known, without the columns that have no figure.
func Table(w io.Writer) Printer { return &table{w: w} }

type table struct {
	w      io.Writer
	ratios bool // the figures are ratios, but for the latency
	rows   []Row
}

func (t *table) Print(r Row) error {
	var err error
	if len(t.rows) > 0 && t.rows[0].Scenario != r.Scenario {
		err = t.Close()
	}
	t.rows = append(t.rows, r)
	return err
}

func (t *table) Close() error {
	if len(t.rows) == 0 {
		return nil
	}
	rows := t.rows
	t.rows = nil
	columns := used(rows)
	tw := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	names := []string{rows[0].Scenario}
	for _, f := range columns {
		names = append(names, f.name)
	}
	fmt.Fprintln(tw, strings.Join(names, "\t")+"\t")
	for _, r := range rows {
		cells := []string{r.Contestant}
		for _, f := range columns {
			places := f.places
			if t.ratios && f.name != "ms" {
				places = 2
			}
			cells = append(cells, cell(*f.of(&r), places))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.w)
	return err
}

func used(rows []Row) []figure {
	var out []figure
	for _, f := range figures {
		for _, r := range rows {
			if *f.of(&r) != nil {
				out = append(out, f)
				break
			}
		}
	}
	return out
}

func cell(v *float64, places int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', places, 64)
}
