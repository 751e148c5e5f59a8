package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shell"
)

// connectionFlags say which queue, which records and whose keys are meant, and by whom. A printed command has those of the call that
// prints it.
var connectionFlags = []string{
	"queue", "dlq", "source", "s3", "not-dead-letter", "spend-receives", "same-keys", "limit", // of a queue
	"consumer", "table", "store", "outbox", "retention", "operator",
}

// givenConnection are the flags of connectionFlags that a command line has set.
func givenConnection(c *cobra.Command) (given []*pflag.Flag) {
	for _, name := range connectionFlags {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && !(name == "limit" && !ofQueue(c)) {
			given = append(given, f)
		}
	}
	return given
}

// ofQueue says that a command reads a dead-letter queue. Its --limit counts messages.
func ofQueue(c *cobra.Command) bool { return c.Flags().Lookup("dlq") != nil }

// hint is another command of this program, to be typed next. It has those flags of this call that say which queue and records are
// meant. Where nothing says which queue, QUEUE stands for it. key is the record that the command is about, whose consumer is meant where no
// other one is named, or "".
func (a *app) hint(key string, args ...string) string {
	target, rest, err := a.root.Find(args)
	if err != nil {
		return a.commandLine(args)
	}
	words := slices.Clone(args[:len(args)-len(rest)])
	for _, f := range a.given {
		if target.Flags().Lookup(f.Name) == nil || slices.Contains(rest, "--"+f.Name) || f.Name == "limit" && !ofQueue(target) {
			continue
		}
		switch value := f.Value.String(); {
		case f.NoOptDefVal == "":
			words = append(words, "--"+f.Name, value)
		case f.NoOptDefVal == value:
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name+"="+value)
		}
	}
	of, _, found := strings.Cut(key, "#")
	if found && a.flags.consumer == "" && target.Flags().Lookup("consumer") != nil {
		words = append(words, "--consumer", of)
	}
	byKey := target.Name() == "free" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") // needs no queue
	if ofQueue(target) && !byKey && a.flags.queue == "" && a.flags.dlq == "" && !slices.Contains(rest, "--queue") {
		words = append(words, "--queue", "QUEUE")
	}
	return a.commandLine(shownArgs(append(words, rest...)))
}

// again is the command line of this call, with more flags.
func (a *app) again(args []string, flags ...string) string {
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	return a.commandLine(slices.Insert(slices.Clone(args), at, flags...))
}

// consent is the flag that a printed command needs where nobody can be asked. One that frees or completes has none, see commandLine.
func (a *app) consent() []string {
	if a.asks {
		return nil
	}
	return []string{"--yes"}
}

// commandLine is a command as it is typed. Whoever pastes one that frees or completes records must say yes to it.
func (a *app) commandLine(args []string) string {
	if slices.Contains(args, "record") && (slices.Contains(args, "free") || slices.Contains(args, "complete")) {
		args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--yes" || strings.HasPrefix(arg, "--yes=") })
	}
	if hasFlag(args, storeFlag) && !a.hidSecret && shownURL(a.flags.store) != a.flags.store {
		a.hidSecret = true
		a.note("%s stands for secrets of %s, which printed commands leave out: set SQSONCE_STORE to the URL, and leave %s out", hiddenSecret, storeFlag, storeFlag)
	}
	return a.typed(args)
}

func (a *app) typed(args []string) string { return a.name() + " " + shell.Command(args...) }

func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == name || strings.HasPrefix(arg, name+"=") })
}

// withoutFlag removes a flag that has a value.
func withoutFlag(args []string, name string) (left []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == name:
			i++
		case !strings.HasPrefix(args[i], name+"="):
			left = append(left, args[i])
		}
	}
	return left
}
