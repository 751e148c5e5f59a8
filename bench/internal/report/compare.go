package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kept is a printer that keeps the rows it prints.
type Kept struct {
	Printer
	// Run is written into each row.
	Run  string
	Rows []Row
}

// Print prints a row and keeps it.
func (k *Kept) Print(r Row) error {
	if k.Run != "" {
		r.Run = k.Run
	}
	k.Rows = append(k.Rows, r)
	return k.Printer.Print(r)
}

// Read reads the rows that [JSON] has printed.
func Read(r io.Reader) (rows []Row, err error) {
	for d := json.NewDecoder(r); ; {
		var row Row
		err := d.Decode(&row)
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, fmt.Errorf("rows of an earlier run: %w", err)
		}
		rows = append(rows, row)
	}
}

// compared are the figures that mean the same in two runs, as far as the machine is the same.
var compared = []string{"msg/s", "SQS/msg", "DDB/msg", "WRU/msg", "CPU us/msg", "endpoint", "allocs/msg", "RSS MB", "binary MB", "init ms"}

// Compare prints tables of rows divided by those of an earlier run. A row that the earlier run does not have has no figures.
func Compare(w io.Writer, rows, earlier []Row) error {
	t := &table{w: w, ratios: true}
	for _, r := range rows {
		var before Row
		if i := slices.IndexFunc(earlier, r.same); i >= 0 {
			before = earlier[i]
		}
		out := Row{Scenario: r.Scenario, Contestant: r.Contestant}
		for _, f := range figures {
			if slices.Contains(compared, f.name) {
				*f.of(&out) = quotient(*f.of(&r), *f.of(&before))
			}
		}
		out.Latency = r.Latency
		if err := t.Print(out); err != nil {
			return err
		}
	}
	return t.Close()
}
