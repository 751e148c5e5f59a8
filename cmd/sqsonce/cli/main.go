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
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

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
	// Key is the consumer's dedup.Options.Key. It must not change the message, and is called concurrently. Default: Message.Key.
	Key func(*sqsonce.Message) (string, error)
	// TrustDedupID is the consumer's dedup.Options.TrustDedupID. Default: false.
	TrustDedupID bool
	// NoUnwrap says that the consumer has no sqsonce.OpenEnvelope around its handler. Default: false, Key gets the message in an
	// envelope.
	NoUnwrap bool
	// Store opens the store of the consumer's records. It is called once, by commands that need records. Default: the DynamoDB
	// table of --table.
	Store func(context.Context) (Store, error)
	// Outbox opens the outbox of the commands that are about one. Default: that of --table and --outbox, in DynamoDB.
	Outbox func(context.Context) (outbox.Store, error)
}

// Main runs the command of os.Args, and ends the process with its exit code: 0 done, 1 failed, 2 usage, 3 found, 4 in part or
// interrupted, 5 refused, 6 credentials or permission. SIGINT and SIGTERM end it cleanly: what it has received is visible again,
// a write that is under way is awaited. A second one ends it at once, with 128 and its number: messages may stay hidden for a
// minute, of a long list for one for each 10,000, or for --hold.
func Main(optFns ...func(*Options)) {
	ctx := interruptible()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, connect: connect}
	for _, fn := range optFns {
		fn(&a.opts)
	}
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

func interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "sqsonce: interrupted: what is under way ends first; a second interrupt ends it at once")
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

	flags flags
	args  []string // of the command line
	store Store    // nil: not opened
}
