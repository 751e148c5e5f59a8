// Command realaws runs the conformance suites, both hosts and the demo on AWS. `make aws` starts it, and `make aws-clean`
// deletes everything that a killed run left behind.
//
// Use an AWS account without anything else in it: the program deletes every queue, table and stack whose name begins
// with "sqsonce-aws-". It needs SQSONCE_AWS_ACCOUNT, AWS_REGION and credentials of that account; AWS.md has the permissions.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// allRuns begins the names of all resources of all runs.
const allRuns = "sqsonce-aws-"

// cleanTimeout is long enough for a stack with functions.
const cleanTimeout = 15 * time.Minute

type options struct {
	clean, yes, quick, demo bool
	run, report             string
}

func main() {
	var o options
	flag.BoolVar(&o.clean, "clean", false, "delete what earlier runs left behind, and run nothing")
	flag.BoolVar(&o.yes, "yes", os.Getenv("YES") == "1", "do not ask")
	flag.BoolVar(&o.quick, "quick", false, "leave out the cases that wait for longer than 3 s")
	flag.BoolVar(&o.demo, "demo", true, "deploy the demo with SAM and run it")
	flag.StringVar(&o.run, "run", ".", "the tests of the suites to run, as go test -run")
	flag.StringVar(&o.report, "report", "aws-report.txt", "file for the report")
	flag.Parse()
	if err := o.main(context.Background(), flag.Args(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "realaws:", err)
		os.Exit(1)
	}
}

func (o options) main(ctx context.Context, rest []string, in io.Reader, out io.Writer) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q is not an option: nothing was done", rest[0])
	}
	cfg, err := open(ctx)
	if err != nil {
		return err
	}
	prefix := allRuns
	if !o.clean {
		prefix += strings.ToLower(rand.Text()[:8]) + "-"
	}
	left, err := find(ctx, cfg, prefix)
	if err != nil {
		return fmt.Errorf("nothing was done: %w", err) // a run could not delete what it cannot list
	}
	if o.clean && len(left) == 0 {
		fmt.Fprintln(out, "nothing is left")
		return nil
	}
	fmt.Fprintf(out, "account %s, region %s %s\nprefix %s\n", os.Getenv("SQSONCE_AWS_ACCOUNT"), cfg.Region, os.Getenv("AWS_ENDPOINT_URL"), prefix)
	for _, r := range left {
		fmt.Fprintln(out, "to delete:", r)
	}
	if err := o.confirm(in, out); err != nil {
		return err
	}
	ctx = catchSignals(ctx)
	if !o.clean {
		err = o.perform(ctx, cfg, prefix, out)
		fmt.Fprintln(out, "deleting everything with the prefix; a second interrupt leaves it to make aws-clean")
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
	}
	return errors.Join(err, clean(ctx, cfg, prefix, out))
}

// open returns the SDK's usual configuration, if STS says that its credentials are of SQSONCE_AWS_ACCOUNT.
func open(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return cfg, err
	}
	if os.Getenv("AWS_REGION") == "" {
		return cfg, errors.New("AWS_REGION is not set: nothing was done")
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return cfg, fmt.Errorf("asking STS for the account of the credentials: %w", err)
	}
	if got, want := aws.ToString(who.Account), os.Getenv("SQSONCE_AWS_ACCOUNT"); got == "" || got != want {
		return cfg, fmt.Errorf("the credentials are of account %s, and SQSONCE_AWS_ACCOUNT is %q: nothing was done", got, want)
	}
	return cfg, nil
}

// confirm asks, before signals are caught: an interrupt ends the program, which has done nothing.
func (o options) confirm(in io.Reader, out io.Writer) error {
	if o.yes {
		return nil
	}
	fmt.Fprint(out, "go on? yes or no: ")
	line, _ := bufio.NewReader(in).ReadString('\n') // an error is not a yes
	if strings.TrimSpace(line) != "yes" {
		return errors.New("the answer was not yes: nothing was done (YES=1 does not ask)")
	}
	return nil
}

// catchSignals returns a context that the first signal ends; a second one ends the program.
func catchSignals(ctx context.Context) context.Context {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, func() {
		time.Sleep(2 * time.Second) // make passes on the signal that the program got as well
		stop()
	})
	// A closed pipe (`| tee` after Ctrl-C) must not end the program before the deletion.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx
}

// perform runs the suites and the demo, and writes their output into the report, also after an interrupt.
func (o options) perform(ctx context.Context, cfg aws.Config, prefix string, out io.Writer) error {
	dir, err := os.MkdirTemp("", allRuns)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var text bytes.Buffer
	both := io.MultiWriter(out, &text)
	r := runner{cfg: cfg, prefix: prefix, dir: dir, out: both, errors: both}
	err = o.suites(ctx, r)
	if o.demo && ctx.Err() == nil {
		err = errors.Join(err, r.demo(ctx))
	}
	report := strings.ReplaceAll(text.String(), os.Getenv("SQSONCE_AWS_ACCOUNT"), "111122223333")
	fmt.Fprintln(out, "report:", o.report)
	return errors.Join(err, context.Cause(ctx), os.WriteFile(o.report, []byte(report), 0o644))
}

// suites compiles the suites and runs them as a process of their own: go test would leave it running after a signal.
func (o options) suites(ctx context.Context, r runner) error {
	binary := filepath.Join(r.dir, "suites.test")
	if err := r.command(ctx, ".", nil, "go", "test", "-c", "-tags", "aws", "-o", binary, "./suites"); err != nil {
		return err
	}
	patience := 6 * time.Minute // longer than SQS's five minutes of deduplication
	if o.quick {
		patience = 0 // the suite's default
	}
	return r.command(ctx, ".", []string{"SQSONCE_AWS_PREFIX=" + r.prefix, "SQSONCE_AWS_PATIENCE=" + patience.String()},
		binary, "-test.v", "-test.run="+o.run, "-test.timeout=8h", "-test.parallel=8")
}

// runner runs programs.
type runner struct {
	cfg         aws.Config
	prefix, dir string
	out, errors io.Writer
}

func (r runner) command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, r.out, r.errors
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}
