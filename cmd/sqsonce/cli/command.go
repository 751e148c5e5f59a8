package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run runs one command.
func (a *app) run(ctx context.Context, args []string) exitCode {
	out := bufio.NewWriter(a.out)
	a.out, a.args = out, args
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(out)
	root.SetErr(a.err)
	begun := false
	walk(root, func(c *cobra.Command) {
		if inner := c.RunE; inner != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				begun = true
				return inner(cmd, args)
			}
		}
	})
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, out.Flush())
	code := codeOf(ctx, err)
	if err != nil && !begun { // cobra's
		code = exitUsage
	}
	if silent, ok := errors.AsType[*exitError](err); err != nil && !(ok && silent.err == nil) {
		fmt.Fprintf(a.err, "sqsonce: %s\n", escapedLines(explain(err)))
	}
	if code == exitUsage {
		fmt.Fprintf(a.err, "see: %s --help\n", cmd.CommandPath())
	}
	return code
}

func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		walk(sub, f)
	}
}

func (a *app) root() *cobra.Command {
	root := group("sqsonce", "Look into dead-letter queues, and at the records of events")
	root.Long = `sqsonce shows what lies in a dead-letter queue and why, sends messages back as the same events, archives, deletes and restores them,
runs an event again, reads, frees and completes the records of events, shows what an outbox has not published yet, looks for what is
wrong in a deployment, and watches workers and queues.

Results go to standard output: a table on a terminal, lines with tabs in a pipe, one object with --json. All else goes to standard
error. SQSONCE_QUEUE, SQSONCE_CONSUMER and SQSONCE_TABLE stand for the flags of the same names, for an outbox SQSONCE_OUTBOX
and SQSONCE_OUTBOX_TABLE. Region, credentials and endpoints
are those of AWS's own environment variables and profiles.

Exit codes: 0 done, or nothing to do; 1 failed; 2 usage; 3 found (dlq ls --exit-code, doctor); 4 in part, or interrupted; 5 refused, or
changed since it was looked at; 6 credentials or permission.`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentFlags().BoolVar(&a.flags.json, "json", false, "print one JSON object")
	root.PersistentFlags().DurationVar(&a.flags.timeout, "timeout", 0, "end the command after this time (default: none)")
	dlq := group("dlq", "Messages of a dead-letter queue", a.dlqLs(), a.dlqShow(), a.dlqRedrive(), a.dlqExport(), a.dlqDelete(), a.dlqRestore())
	record := group("record", "Records of events", a.recordShow(), a.recordLs(), a.recordFree(), a.recordComplete())
	box := group("outbox", "Events that are committed and not published yet", a.outboxLs(), a.outboxShow(), a.outboxUnpark(), a.outboxDiscard())
	root.AddCommand(dlq, record, box, a.replay(), a.doctor(), a.top(), a.console(), a.version())
	if len(a.args) == 0 || !strings.HasPrefix(a.args[0], cobra.ShellCompRequestCmd) {
		return root // cobra keeps every flag with a completion for ever, and by it the app with its output: a console makes many
	}
	walk(root, func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, set := c.GetFlagCompletionFunc(f.Name); !set {
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // fails for a flag that has one only
			}
		})
	})
	return root
}

// group returns a command that is only a name for others.
func group(name, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(subs...)
	return c
}

// command returns a command that does something. Names of queues, keys and IDs are not completed: nothing is asked of AWS.
func (a *app) command(use, short, long, example string, args cobra.PositionalArgs, f func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: args, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if a.flags.timeout > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, a.flags.timeout)
				defer cancel()
			}
			a.flags.environment(a.getenv)
			return f(ctx, args)
		},
	}
}
