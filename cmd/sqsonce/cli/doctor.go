package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
)

type doctorFlags struct {
	function, role string
	limits         string
	noClient       bool
	workers        []string
	longest        days
	allOrNothing   bool
	probe, strict  bool
}

func (a *app) doctor() *cobra.Command {
	f := doctorFlags{}
	c := a.command("doctor", "Check a queue, a function, a table and a role for defects", `Checks the settings that lose messages, run events twice or wake people, and says how to fix each one: the queue and its dead-letter
queue, the function's event source mapping, the table, the role, the alarms, the clock and running workers. It checks only the parts
that you name by flags. docs/operating.md describes each check.

It changes nothing and receives no message. With --probe it also makes calls that cannot succeed: run it with the role's own
credentials. DynamoDB bills two write units for them. With --worker it asks the workers twice, 2 s apart.

A finding is ok, warn, FAIL, unknown or skip. A check that could not look, for example without a permission or a connection, is
unknown and never ok. Lines in a pipe: verdict, check, text, fix.

Exit codes: 3 if a check is a FAIL, or with --strict a warn. Otherwise, if a check could not look or saw only a part: 6 if permissions
are missing, else 4. Otherwise 0.`,
		`  sqsonce doctor --queue orders --function billing --table dedup
  sqsonce doctor --queue orders --table dedup --worker http://billing:8080 --strict --json`,
		cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.diagnose(ctx, f) })
	c.Flags().StringVar(&a.flags.queue, "queue", "", "the source `queue`, by name, URL or ARN")
	c.Flags().StringVar(&f.function, "function", "", "the `name` or ARN of the function that reads it")
	c.Flags().StringVar(&f.role, "role", "", "the `ARN` of the consumer's role (default: the function's)")
	c.Flags().StringSliceVar(&f.workers, "worker", nil, "`URL`s of workers' status handlers, or dns:HOST:PORT, with commas between")
	c.Flags().Var(&f.longest, "longest-handler", "how long the longest handler runs, as 90s or 15m")
	limitsFlags(c, &f.limits, &f.noClient)
	c.Flags().BoolVar(&f.allOrNothing, "all-or-nothing", false, "the function deliberately reports no batch item failures")
	c.Flags().BoolVar(&f.probe, "probe", false, "test the caller's permissions with calls that cannot succeed")
	c.Flags().BoolVar(&f.strict, "strict", false, "end with exit code 3 for a warn too")
	a.retentionFlag(c)
	return a.recordFlags(c)
}

func limitsFlags(c *cobra.Command, limits *string, noClient *bool) {
	c.Flags().StringVar(limits, "limits", "", "the function has a limiter, whose rules have a Counter (`fleet`) or not (process)")
	c.Flags().BoolVar(noClient, "no-client", false, "the function of --limits has no SQS client")
}

// checkLimits refuses a --limits, or a --no-client, that says nothing to the doctor.
func checkLimits(limits, function string, noClient bool) error {
	switch {
	case !slices.Contains([]string{"", doctor.LimitsFleet, doctor.LimitsProcess}, limits):
		return fail(exitUsage, "--limits is %q, must be %s or %s", limits, doctor.LimitsFleet, doctor.LimitsProcess)
	case limits != "" && function == "":
		return fail(exitUsage, "--limits is about the function: set --function. Workers of --worker say it themselves")
	case noClient && limits == "":
		return fail(exitUsage, "--no-client is about the function's limiter: set --limits")
	}
	return nil
}

func (a *app) diagnose(ctx context.Context, f doctorFlags) error {
	d := doctor.Deployment{
		Function: f.function, Table: a.flags.table, Consumer: a.flags.consumer, Role: f.role, Workers: f.workers, Retention: a.flags.retention.orDefault(),
		LongestHandler: time.Duration(f.longest), Limits: f.limits, NoClient: f.noClient, AllOrNothing: f.allOrNothing, Probe: f.probe,
		Look: a.hint("", "dlq", "ls"),
	}
	if d.Store = a.storeCheck(); d.Store != nil {
		d.Table = "" // SQSONCE_TABLE: the records are elsewhere
	}
	inAWS := cmp.Or(a.flags.queue, d.Function, d.Table, d.Role) != ""
	switch {
	case !inAWS && len(d.Workers) == 0 && d.Store == nil:
		return fail(exitUsage, "nothing to check: set --queue, --function, --table, --store, --role or --worker")
	case d.Retention < 0 || d.LongestHandler < 0:
		return fail(exitUsage, "--retention and --longest-handler must not be negative")
	}
	if err := checkLimits(d.Limits, d.Function, d.NoClient); err != nil {
		return err
	}
	if err := (&fleet.Fleet{Targets: d.Workers}).Check(); err != nil {
		return err
	}
	if a.flags.store != "" {
		if _, err := a.openStore(ctx); err != nil { // its URL; it connects later
			return err
		}
	}
	clients := doctor.Clients{HTTP: a.http}
	s, err := a.connect(ctx)
	switch {
	case err != nil && inAWS:
		return err
	case err != nil:
		a.note("AWS is not asked: %v", err)
	default:
		clients.SQS, clients.DynamoDB, clients.Lambda, clients.IAM = s.sqs, s.dynamo, s.lambda, s.iam
		clients.CloudWatch, clients.STS, clients.Scheduler = s.cloudwatch, s.sts, s.scheduler
		if a.flags.queue != "" {
			d.QueueURL, d.NoQueue = s.impatient().named(ctx, a.flags.queue)
			if d.NoQueue != nil && codeOf(ctx, d.NoQueue) == exitUsage {
				return d.NoQueue
			}
		}
	}
	r := diagnosis{V: 1, Findings: []doctor.Finding{}}
	for f := range doctor.Each(ctx, clients, d) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // what could not be asked after that is no finding
		}
		r.Findings = append(r.Findings, f)
		if !a.flags.json {
			if err := a.printFinding(f); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.count()
	if a.flags.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	}
	a.note("%s", r.summary())
	return r.exit(f.strict)
}

// named returns the URL of a queue, or the name and why there is no URL.
func (s *services) named(ctx context.Context, queue string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url, err := s.queueURL(ctx, queue)
	if err == nil {
		return url, nil
	}
	if _, none := errors.AsType[*exitError](err); none {
		err = &doctor.NoSuchQueue{Err: err}
	}
	return queue, err
}

// diagnosis is the JSON of doctor.
type diagnosis struct {
	V        int              `json:"v"`
	Findings []doctor.Finding `json:"findings"`
	OK       int              `json:"ok"`
	Warnings int              `json:"warnings"`
	Failures int              `json:"failures"`
	Unknown  int              `json:"unknown"`
	Skipped  int              `json:"skipped"`
}

func (r *diagnosis) count() {
	for _, f := range r.Findings {
		switch f.Verdict {
		case doctor.OK:
			r.OK++
		case doctor.Warn:
			r.Warnings++
		case doctor.Fail:
			r.Failures++
		case doctor.Unknown:
			r.Unknown++
		default:
			r.Skipped++
		}
	}
}

func (r *diagnosis) summary() string {
	several := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	return fmt.Sprintf("%d ok, %s, %s, %d unknown", r.OK, several(r.Warnings, "warning"), several(r.Failures, "failure"), r.Unknown)
}

// exit returns an error where the findings have an exit code.
func (r *diagnosis) exit(strict bool) error {
	if r.Failures > 0 || strict && r.Warnings > 0 {
		return &exitError{code: exitFound}
	}
	switch missed := func(f doctor.Finding) bool { return f.Missed }; {
	case slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Denied }):
		return fail(exitDenied, "not all was seen: permissions are missing")
	case slices.ContainsFunc(r.Findings, missed):
		return fail(exitPart, "not all was seen")
	}
	return nil
}

// printFinding prints a finding as soon as it is there. A terminal breaks its lines: a fix is to be copied whole.
func (a *app) printFinding(f doctor.Finding) error {
	text, fix := escaped(f.Text), escaped(f.Fix)
	line := strings.Join([]string{string(f.Verdict), f.ID, text, fix}, "\t")
	if a.width > 0 {
		line = fmt.Sprintf("%-7s  %-2s  %s", f.Verdict, f.ID, text)
		if fix != "" {
			line += "\n             fix: " + fix
		}
	}
	if _, err := fmt.Fprintln(a.out, line); err != nil {
		return err
	}
	return a.flush()
}
