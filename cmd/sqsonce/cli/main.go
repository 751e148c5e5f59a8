// Package cli is the command sqsonce, for programs whose consumers have a key function or a store of their own: each gets every
// command. A whole program is examples/operate:
//
//	func main() {
//		cli.Main(func(o *cli.Options) {
//			o.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
//			o.Store = func(context.Context) (cli.Store, error) { return openStore() }
//		})
//	}
//
// Results go to standard output, all else to standard error: as a table on a terminal, as lines with tabs in a pipe, or with
// --json as one object, whose v is the version of its form; one that changes many messages prints such a line for each.
// There is no configuration file. What is changed is written into audit.jsonl in $XDG_STATE_HOME/sqsonce (default
// ~/.local/state/sqsonce), beside the journals of redrives and restores: without that nothing is changed.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Store is a store of records that operators can read and change, as every store of this module.
type Store interface {
	dedup.Store
	dedup.Reopener
	dedup.Lister
}

// Options say what the commands cannot find out: how the consumer makes its keys, and where its records are.
type Options struct {
	// Most users set these first.

	// Key is the consumer's dedup.Options.Key. It must not change the message, and is called concurrently.
	// Default: Message.Key.
	Key func(*sqsonce.Message) (string, error)
	// Store opens the store of the consumer's records. It is called once, by commands that need records.
	// Default: the DynamoDB table of --table.
	Store func(context.Context) (Store, error)
	// Name is the program's, in its help, and in commands that it prints.
	// Default: sqsonce.
	Name string

	// The consumer's keys.

	// TrustDedupID is the consumer's dedup.Options.TrustDedupID.
	// Default: false.
	TrustDedupID bool
	// NoOpenEnvelope says that the consumer has no sqsonce.OpenEnvelope around its handler.
	// Default: false, Key gets the message in an envelope.
	NoOpenEnvelope bool
	// S3 says that the consumer has sqsonce.S3 around its handler: the default of the flag --s3.
	// Default: false, the commands leave notifications of S3 whose key depends on that, without the flag.
	S3 bool

	// Other stores.

	// StoreURL opens the store of --store, a URL such as postgres://user@host/database. The command prints its errors, which must not
	// have the URL's password.
	// Default: --store is dynamodb:TABLE only.
	StoreURL func(context.Context, *url.URL) (Store, error)
	// Outbox opens the outbox of the commands that are about one.
	// Default: that of --table and --outbox, in DynamoDB.
	Outbox func(context.Context) (outbox.Store, error)
}

// Main runs the command of os.Args, and ends the process with its exit code: 0 done, 1 failed, 2 usage, 3 found, 4 in part or
// interrupted, 5 refused, 6 credentials or permission. SIGINT and SIGTERM end it cleanly: what it has received is visible again,
// a write that is under way is awaited. A second one ends it at once, with 128 and its number: messages may stay hidden for a
// minute, of a long list for one for each 10,000, or for --hold.
func Main(optFns ...func(*Options)) {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, connect: connect}
	for _, fn := range optFns {
		fn(&a.opts)
	}
	ctx := interruptible(a.name())
	a.bars = term.IsTerminal(int(os.Stderr.Fd()))
	a.asks = a.bars && term.IsTerminal(int(os.Stdin.Fd()))
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		a.size = func() (width, height int) {
			width, height, err := term.GetSize(fd)
			if err != nil || width <= 0 {
				return 80, 0
			}
			return width, height
		}
		a.width, _ = a.size()
	}
	os.Exit(int(a.run(ctx, os.Args[1:])))
}

var errInterrupted = errors.New("interrupted")

func interruptible(name string) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, name+": interrupted: finishing the running step. Interrupt again to end at once")
		cancel(errInterrupted)
		if s, ok := (<-signals).(syscall.Signal); ok {
			os.Exit(128 + int(s))
		}
	}()
	return ctx
}

// app is one run of the program.
type app struct {
	opts     Options
	in       io.Reader
	answers  *bufio.Reader // of in; nil: nothing was asked
	out, err io.Writer
	asks     bool                       // somebody is there to answer a question
	bars     bool                       // standard error is a terminal
	width    int                        // the columns of the terminal that shows the result; 0: it is not a terminal
	size     func() (width, height int) // of that terminal now; height 0: not known
	getenv   func(string) string
	connect  func(context.Context) (*services, error)
	http     *http.Client // for workers. Nil: a new one
	behind   bool         // a page shows what is said, which has not the program's name

	flags     flags
	root      *cobra.Command
	args      []string      // of the command line
	given     []*pflag.Flag // those of connectionFlags in it
	hidSecret bool          // a printed command lacks one, and that was said
	store     Store         // nil: not opened
	caller    *who          // nil: not asked
}

// run runs one command.
func (a *app) run(ctx context.Context, args []string) exitCode {
	out := bufio.NewWriter(a.out)
	a.out, a.args = out, shownArgs(args)
	root := a.commands()
	a.root = root
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
		text := escapedLines(explain(err))
		if !a.behind {
			text = a.name() + ": " + text
		}
		fmt.Fprintln(a.err, text)
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

func (a *app) commands() *cobra.Command {
	root := group(a.name(), "Look into dead-letter queues, and at the records of events")
	root.Long = `sqsonce lists a dead-letter queue by reason, sends its messages back as the same events, archives, deletes and restores them. It runs
an event again, reads, frees and completes events' records, shows the unpublished events of an outbox, checks a deployment for defects,
pauses consumers, and watches workers and queues.

Results go to standard output: a table on a terminal, lines with tabs in a pipe, one object with --json. Everything else goes to
standard error. SQSONCE_QUEUE, SQSONCE_CONSUMER, SQSONCE_TABLE and SQSONCE_STORE set the flags of the same names, SQSONCE_OUTBOX
and SQSONCE_OUTBOX_TABLE those of an outbox. SQSONCE_STORE goes before SQSONCE_TABLE, and a flag before both. A store's password
belongs in SQSONCE_STORE: others see a command's flags. Region, credentials and endpoints come from AWS's own environment variables and
profiles.

Exit codes: 0 done, or nothing to do. 1 failed. 2 usage. 3 found (dlq ls --exit-code, doctor, status). 4 partly done, or interrupted. 5 refused,
or changed since you looked. 6 credentials or permission.`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentFlags().BoolVar(&a.flags.json, "json", false, "print one JSON object")
	root.PersistentFlags().DurationVar(&a.flags.timeout, "timeout", 0, "end the command after this time (default: none)")
	dlq := group("dlq", "Messages of a dead-letter queue", a.dlqLs(), a.dlqShow(), a.dlqRedrive(), a.dlqExport(), a.dlqDelete(), a.dlqRestore())
	record := group("record", "Records of events", a.recordShow(), a.recordLs(), a.recordFree(), a.recordComplete())
	box := group("outbox", "Events that are committed and not published yet", a.outboxLs(), a.outboxShow(), a.outboxUnpark(), a.outboxDiscard(), a.outboxCancel())
	root.AddCommand(dlq, record, box, a.replay(), a.pause(), a.resume(), a.setConcurrency(), a.status(), a.doctor(), a.top(), a.console(), a.version())
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
			a.given = givenConnection(cmd)
			a.flags.environment(a.getenv)
			return f(ctx, args)
		},
	}
}

const modulePath = "github.com/sqsonce/sqsonce/cmd/sqsonce"

func (a *app) version() *cobra.Command {
	return a.command("version", "Show the version", "", "  sqsonce version --json", cobra.NoArgs, func(context.Context, []string) error {
		version, system := moduleVersion(), runtime.GOOS+"/"+runtime.GOARCH
		if a.flags.json {
			return a.printJSON(object{{"v", 1}, {"version", version}, {"go", runtime.Version()}, {"system", system}})
		}
		_, err := fmt.Fprintf(a.out, "%s %s, %s, %s\n", a.name(), version, runtime.Version(), system)
		return err
	})
}

// moduleVersion is that of this module in the program, which may be a user's own.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return info.Main.Version
}

func (a *app) name() string { return cmp.Or(a.opts.Name, "sqsonce") }
