package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// flags are those that several commands have.
type flags struct {
	json    bool
	timeout time.Duration

	queue, dlq, source           string
	notDeadLetter, spendReceives bool
	sameKeys                     bool
	s3                           yesNo
	hold                         time.Duration // of a command that deletes; 0: the default
	limit                        int
	consumer, table, store       string // of table and store at most one
	outbox, outboxTable          string
	retention                    days
	yes, dryRun                  bool
	expect                       int      // negative: not set
	plan                         planHash // the hash of a dry run; "": there was none
	operator                     string
}

// environment sets what no flag has set. A dead-letter queue on the command line is meant instead of a queue of the environment.
func (f *flags) environment(getenv func(string) string) {
	f.queue = cmp.Or(f.queue, getenv("SQSONCE_QUEUE"))
	f.consumer = cmp.Or(f.consumer, getenv("SQSONCE_CONSUMER"))
	if f.table == "" {
		f.store = cmp.Or(f.store, getenv("SQSONCE_STORE"))
	}
	if table, ok := strings.CutPrefix(f.store, "dynamodb:"); ok {
		f.table, f.store = table, ""
	}
	if f.store == "" {
		f.table = cmp.Or(f.table, getenv("SQSONCE_TABLE"))
	}
	f.outbox = cmp.Or(f.outbox, getenv("SQSONCE_OUTBOX"))
	f.outboxTable = cmp.Or(f.outboxTable, getenv("SQSONCE_OUTBOX_TABLE"))
	f.operator = cmp.Or(f.operator, getenv("USER"), getenv("USERNAME"))
}

// recordFlags adds the flags that say which records are meant.
func (a *app) recordFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.flags.consumer, "consumer", "", "the consumer's `name`")
	if a.opts.Store == nil {
		c.Flags().StringVar(&a.flags.table, "table", "", "the DynamoDB `table` of its records")
		c.Flags().StringVar(&a.flags.store, "store", "", "the `URL` of its records: dynamodb:TABLE; with sqsonce-full also URLs of SQL databases and Redis, like postgres://user@host/database, and ?prefix= for other names of tables or keys")
		c.MarkFlagsMutuallyExclusive("table", "store")
	}
	return c
}

// queueFlags adds the flags that say which queue is meant.
func (a *app) queueFlags(c *cobra.Command) *cobra.Command {
	a.dlqFlags(c)
	a.retentionFlag(c)
	return a.recordFlags(c)
}

func (a *app) dlqFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.flags.queue, "queue", "", "the source `queue`, by name, URL or ARN: its dead-letter queue is meant")
	f.StringVar(&a.flags.dlq, "dlq", "", "the dead-letter `queue` itself, by name, URL or ARN")
	f.StringVar(&a.flags.source, "source", "", "the `ARN` of the queue that messages came from which do not say")
	f.Var(&a.flags.s3, "s3", "the consumer has sqsonce.S3 around its handler, or with --s3=false has not. Without the flag notifications of S3 whose key depends on that are left")
	f.Lookup("s3").NoOptDefVal = "true"
	f.BoolVar(&a.flags.notDeadLetter, "not-dead-letter", false, "accept a queue that no queue names as its dead-letter queue")
	f.BoolVar(&a.flags.spendReceives, "spend-receives", false, "also look into a queue whose own redrive policy may then move messages on")
	c.MarkFlagsMutuallyExclusive("queue", "dlq")
}

// yesNo is a flag that has no default: it says yes, no or nothing.
type yesNo struct{ yes, no bool }

func (a *yesNo) String() string {
	if a.yes || a.no {
		return strconv.FormatBool(a.yes)
	}
	return ""
}

func (a *yesNo) Set(s string) error {
	yes, err := strconv.ParseBool(s)
	a.yes, a.no = yes, !yes
	return err
}

func (*yesNo) Type() string { return "bool" }

// sameKeysFlag is never an environment variable: you say it of one queue, which you have looked at.
func (a *app) sameKeysFlag(c *cobra.Command) {
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "stock-keys" { // its old name
			name = "same-keys"
		}
		return pflag.NormalizedName(name)
	})
	c.Flags().BoolVar(&a.flags.sameKeys, "same-keys", false, "you know that this command looks under the consumer's keys ("+a.keysMade()+"), that these are its records, and that --retention is its retention: messages without a record never started, if another message of the queue has one")
}

// keysMade is what a consumer has whose keys this program makes.
func (a *app) keysMade() string {
	made := "the consumer has no key function"
	if a.opts.Key != nil {
		made = "the consumer has this program's key function"
	}
	trust, opens := "has no TrustDedupID", "opens the envelopes that it gets"
	if a.opts.TrustDedupID {
		trust = "has TrustDedupID"
	}
	if a.opts.NoOpenEnvelope {
		opens = "opens no envelopes"
	}
	return made + ", " + trust + " and " + opens
}

func (a *app) limitFlag(c *cobra.Command) {
	c.Flags().IntVar(&a.flags.limit, "limit", 1000, "read at most this many `messages`, and at most 1 GiB. Negative: no limit")
}

func (a *app) retentionFlag(c *cobra.Command) {
	c.Flags().Var(&a.flags.retention, "retention", "the consumer's retention of records, as 29d or 12h (default 29d)")
}

// actFlags adds the flags of commands that change something.
func (a *app) actFlags(c *cobra.Command) *cobra.Command {
	a.confirmFlags(c)
	a.operatorFlag(c)
	a.retentionFlag(c)
	return a.recordFlags(c)
}

func (a *app) operatorFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.flags.operator, "operator", "", "your `name`, which the record's owner shows (default $USER)")
}

// confirmFlags adds those of commands that ask first.
func (a *app) confirmFlags(c *cobra.Command) {
	c.Flags().BoolVar(&a.flags.yes, "yes", false, "answer yes. Required without a terminal")
	c.Flags().BoolVar(&a.flags.dryRun, "dry-run", false, "print the plan and change nothing")
	a.flags.expect = -1
}

func (a *app) expectFlag(c *cobra.Command) {
	c.Flags().IntVar(&a.flags.expect, "expect", -1, "refuse where it would not be so many `messages`")
}

// moment is a time, or how long ago that is.
type moment time.Time

func (m *moment) Set(s string) error {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		*m = moment(t)
		return nil
	}
	var ago days
	if err := ago.Set(s); err != nil || ago <= 0 {
		return fmt.Errorf("%q is neither a time, such as 2026-01-31T12:00:00Z, nor an age, such as 12h or 3d", s)
	}
	*m = moment(time.Now().Add(-time.Duration(ago)))
	return nil
}

func (m *moment) Type() string   { return "time" }
func (m *moment) String() string { return "" }

// days is a duration that also has days.
type days time.Duration

func (d *days) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		count, err := strconv.ParseUint(n, 10, 16)
		*d = days(time.Duration(count) * 24 * time.Hour)
		return err
	}
	parsed, err := time.ParseDuration(s)
	*d = days(parsed)
	return err
}

func (d *days) Type() string { return "duration" }

func (d *days) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// states is a flag that can be repeated, or has several names between commas.
type states struct {
	of     []dedup.RecordState // that it can be
	values []dedup.RecordState
}

func (s *states) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		state := dedup.RecordState(name)
		if !slices.Contains(s.of, state) {
			return fmt.Errorf("%q is none of %s", name, s.names())
		}
		s.values = append(s.values, state)
	}
	return nil
}

func (s *states) names() string {
	var names []string
	for _, state := range s.of {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

func (s *states) Type() string   { return "state" }
func (s *states) String() string { return "" }

func (s *states) add(c *cobra.Command, usage string) {
	c.Flags().Var(s, "state", usage+": "+s.names())
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(strings.Split(s.names(), ", "), cobra.ShellCompDirectiveNoFileComp))
}

// orDefault is dedup's.
func (d days) orDefault() time.Duration { return cmp.Or(time.Duration(d), host.DefaultRetention) }

// selection says which messages are meant.
type selection struct {
	classes, ids, keys, groups []string
	keyFiles                   []string
	state                      states
	after, before              moment
	all                        bool
}

func newSelection() selection { return selection{state: states{of: ops.States()}} }

func (s *selection) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&s.classes, "class", nil, "only the class with this `ID`, in all states without --state (repeatable, like --id, --key and --group)")
	s.state.add(c, "only events in this state")
	flags.StringArrayVar(&s.ids, "id", nil, "only the message with this `ID`")
	flags.StringArrayVar(&s.keys, "key", nil, "only messages of the event with this `key`")
	flags.StringArrayVar(&s.keyFiles, "keys", nil, "only messages of the events whose keys are the lines of this `file`")
	_ = c.MarkFlagFilename("keys") // fails for a flag that does not exist
	flags.StringArrayVar(&s.groups, "group", nil, "only messages of this FIFO `group`")
	flags.Var(&s.after, "sent-after", "only messages sent after this time, as 2026-01-31T12:00:00Z, or so long ago, as 12h or 3d")
	flags.Var(&s.before, "sent-before", "only messages sent before this time")
	flags.BoolVar(&s.all, "all", false, "all messages")
}

func (s *selection) filtered() bool {
	return s.named() || s.state.values != nil ||
		!time.Time(s.after).IsZero() || !time.Time(s.before).IsZero()
}

// named says that the flags name classes, messages, events or groups, which may be mistyped.
func (s *selection) named() bool {
	return s.classes != nil || s.ids != nil || s.keys != nil || s.keyFiles != nil || s.groups != nil
}

// check refuses what the flags do not say clearly. needed says that what is meant must be said, if only by --all.
func (s *selection) check(a *app, needed bool) error {
	switch {
	case needed && !s.filtered() && !s.all:
		return fail(exitUsage, "which messages? Set --class, --state, --id, --key, --keys, --group, --sent-after or --sent-before, or --all")
	case slices.Contains(slices.Concat(s.classes, s.ids, s.keys, s.keyFiles, s.groups), ""):
		return fail(exitUsage, "--class, --id, --key, --keys or --group is empty: is a variable not set?")
	case s.filtered() && s.all:
		return fail(exitUsage, "--all excludes other filters")
	case a.flags.consumer == "" && (s.keys != nil || s.keyFiles != nil || s.state.values != nil):
		return fail(exitUsage, "--key, --keys and --state need --consumer")
	}
	return checkClasses(s.classes)
}

// checkClasses refuses IDs that no class can have, such as two between commas: their list would be empty, as if the messages were gone.
func checkClasses(ids []string) error {
	for _, id := range ids {
		if b, err := hex.DecodeString(id); err != nil || len(b) != 3 {
			return fail(exitUsage, "--class %q is not the ID of a class, six hexadecimal digits as dlq ls shows them: for several classes repeat --class", id)
		}
	}
	return nil
}

// of returns what the flags say to ops.
func (s *selection) of(ctx context.Context, a *app) (ops.Selection, error) {
	o := ops.Selection{
		Classes: s.classes, States: s.state.values, IDs: s.ids,
	}
	keys, err := s.keySet(ctx, a)
	if err != nil {
		return o, err
	}
	after, before := time.Time(s.after), time.Time(s.before)
	if keys != nil || s.groups != nil || !after.IsZero() || !before.IsZero() {
		o.Filter = func(m *ops.Message) bool {
			return (keys == nil || keys[m.RecordKey]) && (s.groups == nil || slices.Contains(s.groups, m.Group)) &&
				(after.IsZero() || m.SentAt.After(after)) && (before.IsZero() || m.SentAt.Before(before))
		}
	}
	return o, nil
}

// keySet returns the keys of --key and --keys, or nil without these flags.
func (s *selection) keySet(ctx context.Context, a *app) (map[string]bool, error) {
	args := slices.Clone(s.keys)
	for _, file := range s.keyFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fail(exitFailed, "--keys: %w", err)
		}
		lines := keyLines(text)
		if lines == nil {
			return nil, fail(exitUsage, "--keys: %s has no keys", file)
		}
		args = append(args, lines...)
	}
	if args == nil {
		return nil, nil
	}
	store, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, arg := range args {
		key, err := a.recordKey(store, arg)
		if err != nil {
			return nil, err
		}
		set[key] = true
	}
	return set, nil
}

// with returns the filter that selects the messages of both. It asks the second one about those of the first alone, which may be nil.
func with(first, second func(*ops.Message) bool) func(*ops.Message) bool {
	if first == nil {
		return second
	}
	return func(m *ops.Message) bool { return first(m) && second(m) }
}
