// Package role lets one binary be every process of a run: the bench itself, endpoints, contestants and bootstraps.
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

// Run runs the role that the environment names, and reports whether there is one. A role that fails exits with status 1.
func Run() bool {
	name := job.Role()
	if name == "" {
		return false
	}
	if err := run(name); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	return true
}

func run(name string) error {
	ctx := context.Background()
	switch name {
	case scenario.RoleEndpoint:
		return endpoint.Serve(ctx, os.Stdin, os.Stdout)
	case scenario.RoleContestant:
		j, err := job.Read()
		if err != nil {
			return err
		}
		return contestant.Serve(ctx, os.Stdin, os.Stdout, j)
	case scenario.RoleFunction:
		j, err := job.Read()
		if err != nil {
			return err
		}
		return function.Start(j)
	}
	return fmt.Errorf("role: no role %q", name)
}
