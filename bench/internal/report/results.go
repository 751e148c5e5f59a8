package report

import (
	"bufio"
	"fmt"
	"io"
)

// shown are the tables of RESULTS.md. All rows are in rows.jsonl.
var shown = []string{
	"worker", "dedup", "lambda/10", "lambda/1000", "fifo/0", "cold", "outbox", "slow", "stop/quiet", "duplicates", "memory",
}

// Results writes RESULTS.md: tables of the rows that a reader looks for first, and whether each target is met.
func Results(w io.Writer, rows []Row) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "# Results\n\nThe bench writes this page from [rows.jsonl](rows.jsonl), which has all rows. [README.md](README.md) explains the columns,")
	fmt.Fprintln(out, "the scenarios and the contestants. Compare figures within a table only. Measure again with `make bench`.\n\n```")
	t, run := &table{w: out}, ""
	for _, name := range shown {
		for _, r := range rows {
			if r.Scenario != name {
				continue
			}
			if r.Run != run {
				run = r.Run
				fmt.Fprintf(out, "%s:\n", run)
			}
			if err := t.Print(r); err != nil {
				return err
			}
		}
		if err := t.Close(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "```\n\n## Targets\n\n| row, figure, compared with | here | target |\n|---|---|---|")
	for all := verdicts(rows); len(all) > 0; {
		figure, limit, here := all[0].figure, all[0].limit, ""
		for ; len(all) > 0 && all[0].figure == figure; all = all[1:] {
			here += "; " + all[0].String()
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", figure, here[2:], limit)
	}
	return out.Flush()
}

func (v verdict) String() string {
	switch {
	case v.got == nil:
		return "not measured" + v.at
	case v.missed:
		return fmt.Sprintf("**%.2f, missed**%s", *v.got, v.at)
	}
	return fmt.Sprintf("%.2f%s", *v.got, v.at)
}
