// Command realaws runs the conformance suites, both hosts and the demo on AWS itself, and writes down where AWS differs from
// the services in memory. `make aws` starts it, `make aws-clean` deletes what an earlier run has left.
//
// It needs SQSONCE_AWS_ACCOUNT, AWS_REGION and credentials of that account; docs/aws.md lists the permissions. It shows what
// it would cost, asks, and deletes everything that it created: at the end, after a failure and after an interrupt. All
// requests pass the guard of package account, which sends none for a resource without the run's prefix.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

type options struct {
	clean, yes, quick      bool
	parts, prefix, outFile string
}

func main() {
	var o options
	flag.BoolVar(&o.clean, "clean", false, "delete what earlier runs have left, and run nothing")
	flag.BoolVar(&o.yes, "yes", os.Getenv("YES") == "1", "do not ask")
	flag.BoolVar(&o.quick, "quick", false, "leave out the cases that wait for longer than 3 s")
	flag.StringVar(&o.parts, "parts", strings.Join(partNames(), ","), "what to run")
	flag.StringVar(&o.prefix, "prefix", "", "with -clean: only of the run with this prefix")
	flag.StringVar(&o.outFile, "report", "aws-report.md", "file for the report")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program
	if err := o.run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "realaws:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if o.clean {
		return o.runClean(ctx, in, out)
	}
	parts, err := selectParts(o.parts)
	if err != nil {
		return err
	}
	if o.prefix != "" {
		return errors.New("-prefix is for -clean: a run has a random one")
	}
	a, err := account.Open(ctx, account.NewPrefix())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "account %s, region %s, prefix of all names %s\n", a.Number, a.Region, a.Guard.Prefix)
	printEstimate(out, parts)
	if err := o.confirm(in, out); err != nil {
		return err
	}
	// From here on there may be something to delete, however the run ends.
	err = o.perform(ctx, a, parts, out)
	if ctx.Err() != nil {
		fmt.Fprintln(out, "interrupted: what was created is deleted; a second interrupt leaves it to make aws-clean")
	}
	cleanCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if cleanErr := clean(cleanCtx, a, out); cleanErr != nil {
		return errors.Join(err, fmt.Errorf("not everything was deleted: run make aws-clean: %w", cleanErr))
	}
	fmt.Fprintln(out, "everything with the prefix is deleted")
	return err
}

// perform runs the parts and writes the report, also where a part fails or the run is interrupted.
func (o options) perform(ctx context.Context, a *account.Account, parts []part, out io.Writer) error {
	r := &runner{account: a, out: out}
	if !o.quick {
		r.patience = 6 * time.Minute // longer than SQS's five minutes of deduplication
	}
	report := &report{region: a.Region, account: a.Number, endpoints: endpoints(), begun: time.Now()}
	err := r.prepare(ctx)
	for _, p := range parts {
		if err == nil && ctx.Err() == nil {
			report.add(r.run(ctx, p))
		}
	}
	err = errors.Join(err, r.close(), context.Cause(ctx))
	if writeErr := os.WriteFile(o.outFile, []byte(report.markdown()), 0o644); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	fmt.Fprintln(out, "report:", o.outFile)
	return errors.Join(err, report.problem())
}

func (o options) runClean(ctx context.Context, in io.Reader, out io.Writer) error {
	a, err := account.Open(ctx, o.prefix)
	if err != nil {
		return err
	}
	left, err := find(ctx, a)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		fmt.Fprintf(out, "nothing is left in account %s, region %s\n", a.Number, a.Region)
		return nil
	}
	fmt.Fprintf(out, "left in account %s, region %s:\n", a.Number, a.Region)
	for _, r := range left {
		fmt.Fprintln(out, " ", r)
	}
	if err := o.confirm(in, out); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return clean(ctx, a, out)
}

func (o options) confirm(in io.Reader, out io.Writer) error {
	if o.yes {
		return nil
	}
	fmt.Fprint(out, "go on? yes or no: ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("the answer was not yes: nothing was done (YES=1 does not ask)")
	}
	return nil
}

// endpoints returns the settings that send requests elsewhere than to AWS.
func endpoints() (set []string) {
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_ENDPOINT_URL") && value != "" {
			set = append(set, v)
		}
	}
	return set
}
