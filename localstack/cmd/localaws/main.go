// Command localaws serves an in-memory SQS and DynamoDB on one port, for any AWS client in any language:
//
//	localaws -queues orders,orders.fifo -tables dedup
//	aws --endpoint-url http://127.0.0.1:4566 sqs receive-message ...
//
// The first line on standard output is its URL, printed when all queues and tables exist. Requests of the query protocol, such as
// those of old CLIs, are refused with what is offered instead. It keeps no record of calls, and stores nothing on disk. Each queue
// gets a dead-letter queue, Name-dlq, for messages received five times. Each table is an idempotency table: string key "id", TTL
// attribute "expiration".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2) // the flag package has said why
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr, o); err != nil {
		slog.Error("localaws ended", "error", err)
		os.Exit(1)
	}
}

type options struct {
	addr           string
	queues, tables []string
	ttlInterval    time.Duration
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("localaws", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.addr, "addr", "127.0.0.1:4566", "`address` to listen on; 0.0.0.0:4566 for other machines and containers")
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		}
	}
	f.Func("queues", "`queues` to create, separated by commas", list(&o.queues))
	f.Func("tables", "idempotency `tables` to create, separated by commas", list(&o.tables))
	f.DurationVar(&o.ttlInterval, "ttl-interval", time.Minute, "how often items are deleted whose time to live has ended; 0: never")
	err = f.Parse(args)
	switch {
	case err != nil:
		return o, err
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected arguments: %q", f.Args())
	case o.ttlInterval < 0:
		err = fmt.Errorf("-ttl-interval is %s, must be 0 or more", o.ttlInterval)
	}
	if err != nil {
		fmt.Fprintln(stderr, "localaws:", err)
		f.Usage()
	}
	return o, err
}

// Of a server that runs for weeks: none for the response, since a poll waits 20 s, and a client may wait longer for what it asks.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	idleTimeout   = 5 * time.Minute // SDKs keep connections for 90 s
)

func run(ctx context.Context, out, log io.Writer, o options) error {
	l, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	q := memsqs.New(func(o *memsqs.Options) { o.OfRequest, o.NoRecord = true, true })
	d := memdynamodb.New(func(o *memdynamodb.Options) { o.NoRecord = true })
	defer q.Close()
	defer d.Close()
	server := &http.Server{
		Handler: localstack.Handler(q, d), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	url := localURL(l.Addr().(*net.TCPAddr))
	if err := create(ctx, url, o.queues, o.tables); err != nil {
		return errors.Join(err, server.Close())
	}
	// All resources exist now. Scripts wait for this line.
	if _, err := fmt.Fprintln(out, url); err != nil {
		return errors.Join(err, server.Close())
	}
	fmt.Fprintf(log, greeting, l.Addr(), url)
	sweep := sweeper(o.ttlInterval)
	defer sweep.Stop()
	for {
		select {
		case err := <-served:
			return err
		case <-sweep.C:
			d.SweepTTL()
		case <-ctx.Done():
			return server.Close()
		}
	}
}

// greeting says how clients find the server. Any credentials will do, and any Region signs: queues and tables are in us-east-1.
const greeting = `localaws serves SQS and DynamoDB with its streams on %[1]s, Region us-east-1, account 000000000000, with any credentials:
  export AWS_ENDPOINT_URL=%[2]s AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
  aws --endpoint-url %[2]s sqs list-queues
`

// localURL returns the URL for clients on this machine.
func localURL(addr *net.TCPAddr) string {
	if addr.IP.IsUnspecified() {
		return "http://127.0.0.1:" + strconv.Itoa(addr.Port)
	}
	return "http://" + addr.String()
}

// sweeper returns a ticker, which never ticks for 0.
func sweeper(every time.Duration) *time.Ticker {
	t := time.NewTicker(max(every, time.Nanosecond))
	if every == 0 {
		t.Stop()
	}
	return t
}

// create creates the queues and tables. They exist as long as the process, so it does not close the stack.
func create(ctx context.Context, url string, queues, tables []string) error {
	_, err := localstack.Start(ctx, func(o *localstack.Options) {
		o.Endpoint = url
		o.Tables = tables
		for _, name := range queues {
			o.Queues = append(o.Queues, localstack.Queue{Name: name})
		}
	})
	return err
}
