// Package role lets one binary be every process of a run: the one that measures, endpoints, contestants, bootstraps.
package role

import (
	"context"
	"fmt"
	"os"

	"github.com/sqsonce/sqsonce/bench/internal/contestant"
	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/function"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/scenario"
)

// Play plays this process's role and reports whether it has one. A role that fails ends the process with status 1.
func Play() bool {
	name := job.Role()
	if name == "" {
		return false
	}
	if err := play(name); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	return true
}

func play(name string) error {
	ctx := context.Background()
	switch name {
	case scenario.RoleEndpoint:
		return endpoint.Serve(ctx, os.Stdin, os.Stdout)
	case scenario.RoleContestant:
		j, err := job.Read[job.Job]()
		if err != nil {
			return err
		}
		return contestant.Serve(ctx, os.Stdin, os.Stdout, j)
	case scenario.RoleFunction:
		j, err := job.Read[job.Job]()
		if err != nil {
			return err
		}
		return function.Start(j)
	}
	return fmt.Errorf("no role %q", name)
}
