package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/internal/opsview"
	"github.com/sqsonce/sqsonce/ops"
)

// selection says which messages are meant.
type selection struct {
	classes, ids, keys, groups []string
	state                      states
	after, before              moment
	all                        bool
}

func newSelection() selection { return selection{state: states{of: opsview.States()}} }

func (s *selection) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&s.classes, "class", nil, "only the class with this `ID`; can be repeated, as --id, --key and --group")
	s.state.add(c, "only events in this state")
	flags.StringArrayVar(&s.ids, "id", nil, "only the message with this `ID`")
	flags.StringArrayVar(&s.keys, "key", nil, "only messages of the event with this `key`")
	flags.StringArrayVar(&s.groups, "group", nil, "only messages of this FIFO `group`")
	flags.Var(&s.after, "sent-after", "only messages sent after this time, as 2026-01-31T12:00:00Z, or so long ago, as 12h or 3d")
	flags.Var(&s.before, "sent-before", "only messages sent before this time")
	flags.BoolVar(&s.all, "all", false, "all messages")
}

func (s *selection) filtered() bool {
	return s.classes != nil || s.state.values != nil || s.ids != nil || s.keys != nil || s.groups != nil ||
		!time.Time(s.after).IsZero() || !time.Time(s.before).IsZero()
}

// check refuses what the flags do not say clearly. needed says that what is meant must be said, if only by --all.
func (s *selection) check(a *app, needed bool) error {
	switch {
	case needed && !s.filtered() && !s.all:
		return fail(exitUsage, "which messages? Set --class, --state, --id, --key, --group, --sent-after or --sent-before, or --all")
	case slices.Contains(slices.Concat(s.classes, s.ids, s.keys, s.groups), ""):
		return fail(exitUsage, "--class, --id, --key or --group is empty: is a variable not set?")
	case s.filtered() && s.all:
		return fail(exitUsage, "--all is not all beside another filter")
	case a.flags.consumer == "" && (s.keys != nil || s.state.values != nil):
		return fail(exitUsage, "--key and --state need --consumer")
	}
	return nil
}

// of returns what the flags say to ops.
func (s *selection) of(ctx context.Context, a *app) (ops.Selection, error) {
	o := ops.Selection{
		Classes: s.classes, States: s.state.values, IDs: s.ids, All: s.all,
	}
	var keys []string
	for _, arg := range s.keys {
		store, err := a.openStore(ctx)
		if err != nil {
			return o, err
		}
		key, err := a.recordKey(store, arg)
		if err != nil {
			return o, err
		}
		keys = append(keys, key)
	}
	after, before := time.Time(s.after), time.Time(s.before)
	if keys != nil || s.groups != nil || !after.IsZero() || !before.IsZero() {
		o.Filter = func(m *ops.Message) bool {
			return (keys == nil || slices.Contains(keys, m.RecordKey)) && (s.groups == nil || slices.Contains(s.groups, m.Group)) &&
				(after.IsZero() || m.SentAt.After(after)) && (before.IsZero() || m.SentAt.Before(before))
		}
	}
	return o, nil
}

// with returns the filter that selects the messages of both. It asks the second one about those of the first alone, which may be nil.
func with(first, second func(*ops.Message) bool) func(*ops.Message) bool {
	if first == nil {
		return second
	}
	return func(m *ops.Message) bool { return first(m) && second(m) }
}
