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
	rest                   []string // arguments that are no options
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
	o.rest = flag.Args()
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, func() {
		time.Sleep(2 * time.Second) // make passes a signal on that the program may have got as well
		stop()                      // a second one ends the program
	})
	// Without it a write to a pipe whose reader has ended, such as tee after Ctrl-C, would end the program before the deletion.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if err := o.run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "realaws:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if len(o.rest) > 0 {
		return fmt.Errorf("%q is not an option: nothing was done", o.rest[0])
	}
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
	if err := checkSAM(parts); err != nil {
		return err
	}
	a, err := account.Open(ctx, account.NewPrefix())
	if err != nil {
		return err
	}
	// What cannot be listed could not be deleted.
	if _, err := find(ctx, a); err != nil {
		return fmt.Errorf("nothing was created: %w", err)
	}
	fmt.Fprintf(out, "%s, prefix of all names %s\n", where(a), a.Guard.Prefix)
	printEstimate(out, parts)
	if err := o.confirm(ctx, in, out); err != nil {
		return err
	}
	// From here on there may be something to delete, however the run ends.
	err = o.perform(ctx, a, parts, out)
	if ctx.Err() != nil {
		fmt.Fprintln(out, "interrupted: now what was created is deleted; a second interrupt leaves it to make aws-clean")
	}
	cleanCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if cleanErr := clean(cleanCtx, a, out, 3); cleanErr != nil {
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
	report := &report{region: a.Region, account: a.Number, endpoints: a.Endpoints, begun: time.Now()}
	err := r.prepare(ctx)
	for _, p := range parts {
		if err == nil && ctx.Err() == nil {
			report.add(r.run(ctx, p))
		} else {
			report.add(&result{part: p.name, skipped: "the run ended before"})
		}
	}
	report.interrupted = ctx.Err() != nil
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
	if len(left) == 0 {
		if err == nil {
			fmt.Fprintln(out, "nothing is left in", where(a))
		}
		return err
	}
	fmt.Fprintf(out, "left in %s:\n", where(a))
	var names []string
	for _, r := range left {
		fmt.Fprintln(out, " ", r)
		names = append(names, r.name)
	}
	if err != nil {
		fmt.Fprintln(out, "not everything could be listed:", err)
	}
	if err := o.confirm(ctx, in, out); err != nil {
		return err
	}
	a.Guard.Only(names)
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return clean(ctx, a, out, 1)
}

// where says where requests go to.
func where(a *account.Account) string {
	s := fmt.Sprintf("account %s, region %s", a.Number, a.Region)
	if len(a.Endpoints) > 0 {
		s += " (this is not AWS: " + strings.Join(a.Endpoints, ", ") + ")"
	}
	return s
}

// confirm asks. An interrupt is an answer too.
func (o options) confirm(ctx context.Context, in io.Reader, out io.Writer) error {
	if o.yes {
		return nil
	}
	fmt.Fprint(out, "go on? yes or no: ")
	answered := make(chan string, 1)
	go func() {
		answer, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			answer = err.Error()
		}
		answered <- strings.TrimSpace(answer)
	}()
	var answer string
	select {
	case answer = <-answered:
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: nothing was done")
	case answer != "yes":
		return fmt.Errorf("the answer was %q, not yes: nothing was done (YES=1 does not ask)", answer)
	}
	return nil
}
