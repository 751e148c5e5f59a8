// Command bench measures sqsonce, the raw SDK and the peers on the same work in the same run: see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sqsonce/sqsonce/bench/internal/report"
	"github.com/sqsonce/sqsonce/bench/internal/role"
	"github.com/sqsonce/sqsonce/bench/internal/scenario"
)

func main() {
	if role.Run() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	asJSON := flags.Bool("json", false, "print a line of JSON for each row instead of tables")
	quick := flags.Bool("quick", false, "one round at 5 ms, about 1 s for each contestant")
	names := flags.String("scenario", "", "scenarios to run, separated by commas: "+strings.Join(scenario.Names(), ", ")+" (default: all)")
	only := flags.String("contestant", "", "contestants to run, separated by commas (default: all)")
	rounds := flags.Int("rounds", 0, "rounds (default: 3, quick 1)")
	earlier := flags.String("compare", "", "file with the output of an earlier run with -json: also print each figure divided by the earlier one")
	from := flags.String("from", "", "file with the output of a run with -json: measure nothing, use its rows")
	pages := flags.String("pages", "", "the repository's folder: write bench/rows.jsonl, bench/RESULTS.md and the pictures of README and docs/cost.md")
	profiles := flags.String("profiles", "", "folder for the CPU and allocation profiles of sqsonce's rows (default: none)")
	_ = flags.Parse(args) // exits on an error

	if *pages != "" && *from == "" && (*quick || *names != "" || *only != "") {
		return errors.New("-pages needs a whole run: leave out -quick, -scenario and -contestant")
	}
	scenarios := scenario.All
	if *names != "" {
		scenarios = nil
		for _, name := range list(*names) {
			found := scenario.Find(name)
			if len(found) == 0 {
				return fmt.Errorf("no scenario %q; the scenarios are %s", name, strings.Join(scenario.Names(), ", "))
			}
			scenarios = append(scenarios, found...)
		}
	}
	b := &scenario.Bench{Size: scenario.Full, Only: list(*only), Profiles: *profiles, Log: os.Stderr}
	if *quick {
		b.Size = scenario.Quick
	}
	if *rounds > 0 {
		b.Size.Rounds = *rounds
	}
	if *profiles != "" {
		if err := os.MkdirAll(*profiles, 0o755); err != nil {
			return err
		}
	}
	before, err := read(*earlier)
	if err != nil {
		return err
	}
	measured, err := read(*from)
	if err != nil {
		return err
	}
	out := &report.Kept{Printer: report.Table(os.Stdout)}
	if *asJSON {
		out.Printer = report.JSON(os.Stdout)
	}
	if *from != "" {
		err = errors.Join(report.Print(out, measured), out.Close())
	} else {
		out.Run = machine(b.Size.Rounds)
		err = b.Run(ctx, scenarios, out)
	}
	if err == nil && *pages != "" {
		err = writePages(*pages, out.Rows)
	}
	if before != nil {
		fmt.Fprintf(os.Stderr, "divided by %s:\n", *earlier)
		err = errors.Join(err, report.Compare(os.Stderr, out.Rows, before))
	}
	missed, unknown := report.Judge(out.Rows)
	for _, line := range unknown {
		fmt.Fprintln(os.Stderr, "bench: target not judged:", line)
	}
	if len(missed) > 0 {
		err = errors.Join(err, fmt.Errorf("targets missed:\n  %s", strings.Join(missed, "\n  ")))
	}
	return err
}

// read returns the rows in a file of an earlier run; nil where there is no name.
func read(name string) ([]report.Row, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return report.Read(f)
}

func list(s string) []string {
	names := strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}
