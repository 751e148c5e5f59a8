// Command bench measures sqsonce, the raw SDK and the peers on the same work in the same run: see README.md.
package main

import (
	"context"
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
	quick := flags.Bool("quick", false, "one round at 5 ms, about 2 s for each contestant")
	names := flags.String("scenario", "", "scenarios to run, separated by commas: "+strings.Join(scenario.Names(), ", ")+" (default: all)")
	only := flags.String("contestant", "", "contestants to run, separated by commas (default: all)")
	rounds := flags.Int("rounds", 0, "rounds (default: 3, quick 1)")
	profiles := flags.String("profiles", "", "folder for the CPU and allocation profiles of sqsonce's rows (default: none)")
	_ = flags.Parse(args) // exits on an error

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
	out := report.Table(os.Stdout)
	if *asJSON {
		out = report.JSON(os.Stdout)
	}
	return b.Run(ctx, scenarios, out)
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
