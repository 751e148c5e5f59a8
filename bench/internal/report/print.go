package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Printer prints rows. It gets each row as soon as it is measured.
type Printer interface {
	Print(Row) error
	// Close prints the rows that Print has not printed yet.
	Close() error
}

// JSON prints each row as a line with a JSON object.
func JSON(w io.Writer) Printer { return jsonPrinter{json.NewEncoder(w)} }

type jsonPrinter struct{ *json.Encoder }

func (p jsonPrinter) Print(r Row) error { return p.Encode(r) }
func (p jsonPrinter) Close() error      { return nil }

// Table prints a table for each scenario when all its rows are known, without the columns that have no figure.
func Table(w io.Writer) Printer { return &table{w: w} }

type table struct {
	w    io.Writer
	rows []Row
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
			cells = append(cells, cell(*f.of(&r), f.places))
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
