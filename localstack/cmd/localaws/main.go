// Command localaws serves an in-memory SQS and DynamoDB on one port, for any AWS client in any language:
//
//	localaws -queues orders,orders.fifo -tables dedup &
//	eval "$(localaws env)"
//	aws sqs receive-message ...
//
// The first line on standard output is its URL, printed when all queues and tables exist. Requests of the query protocol, such as
// those of old CLIs, are refused with what is offered instead. It keeps no record of calls. Each queue of -queues gets a dead-letter queue,
// Name-dlq, for messages received five times. Each table of -tables is an idempotency table: string key "id", TTL attribute "expiration".
//
// Everything is in memory. With -dir it is also saved to a file in that directory, at a stop by SIGTERM or SIGINT and every minute, and
// loaded at the start. This is not durable: a kill loses up to a minute, and queues and tables may then be of different moments. Use the
// directory for one localaws at a time. A damaged file is an error that names the line. Move tasks, receive attempts and
// ClientRequestTokens are not saved.
//
// Each Region of each account has its own queues and tables, as on AWS: a queue in us-east-1 does not exist for a client whose Region is
// eu-west-1. The queues and tables of the flags are in the Region of -region, by default us-east-1, and in account 000000000000. An access
// key of 12 digits is the ID of its account, and all other access keys are of account 000000000000.
//
// With -template it creates the queues, tables, functions and mappings of a SAM or CloudFormation template, as they stand there. It
// lists the resources of other types, and ends with an error for a property that it cannot evaluate. A resource without a name is
// named by its logical ID. With -config it reads them from a file of its own. The settings of queues have AWS's names:
//
//	queues:
//	  orders: {VisibilityTimeout: 60, RedrivePolicy: {deadLetterTargetArn: orders-dlq, maxReceiveCount: 5}}
//	  orders-dlq:
//	tables:
//	  ledger:
//	    key: account      # a string; {account: N} is a number
//	    sort: {at: N}
//	    indexes: {by-state: {key: state, project: KEYS_ONLY}}
//	    ttl: expires
//	    stream: NEW_IMAGE
//	    items: [{account: alice, at: 1, balance: 10}]
//	functions:
//	  orders:
//	    bootstrap: ./bootstrap
//	    Timeout: 30
//	    Environment: {DEDUP_TABLE: dedup}
//	    Events: [{queue: orders, FunctionResponseTypes: [ReportBatchItemFailures]}] # or table: ledger, for its stream
//
// A function with a bootstrap runs: of the configuration, of the template with -bootstrap NAME=PATH, or of -function NAME=PATH and
// -map NAME=QUEUE. localaws polls its queues and streams with the settings of its mappings, and writes its output to standard error after
// its name. It kills a process at the function's timeout, and starts another one with the next event. Mappings of streams begin at
// their starting position whenever they are started or changed. Schedules, other events and destinations are left out.
//
// In addition to the services it answers
//
//	GET  /                                 a page with the queues and tables of all Regions, and the calls of the last minute
//	GET  /_localaws/health                 what it serves, as JSON, with status 503 until all resources exist; also under
//	                                       /_localstack/health. The command localaws health asks for it
//	GET  /_localaws/queues/NAME/messages   the messages of a queue, as JSON, without a receive
//	GET  /_localaws/tables/NAME/items      the items of a table, as JSON, without a read
//	POST /_localaws/reset                  deletes everything, and creates the queues, tables and functions of the flags and files again
//	POST /_localaws/reset?queue=NAME       deletes the messages of a queue; ?table=NAME the items of a table
//
// and the operations of Lambda's API that tools ask for: see lambdaOperations. Add the parameters region and account for a queue or table
// that is not in those of the flags. Other paths have status 404 and a hint, unless a client of AWS sends the request.
//
// The address of -addr is by default that of the environment variable LOCALAWS_ADDR, which the commands localaws env and localaws health
// read too.
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
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "env" {
		if err := printEnv(os.Args[2:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "health" {
		if err := checkHealth(context.Background(), os.Args[2:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
			os.Exit(1)
		}
		return
	}
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
	addr, region   string
	queues, tables []string
	ttlInterval    time.Duration
	strictHandles  bool
	noPurgeDelay   bool
	cors           string
	dir            string
	saveInterval   time.Duration
	files
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("localaws", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.addr, "addr", defaultAddr(), "`address` to listen on; 0.0.0.0:4566 for other machines and containers. LOCALAWS_ADDR in the environment changes the default")
	f.StringVar(&o.region, "region", defaultRegion, "`Region` of the queues and tables of the flags")
	list := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		}
	}
	f.Func("queues", "`queues` to create, separated by commas", list(&o.queues))
	f.Func("tables", "idempotency `tables` to create, separated by commas", list(&o.tables))
	f.DurationVar(&o.ttlInterval, "ttl-interval", time.Minute, "how often items are deleted whose time to live has ended; 0: never")
	f.BoolVar(&o.strictHandles, "strict-handles", false, "refuse changes of visibility with receipt handles of old receives, which AWS was recorded to answer with success")
	f.BoolVar(&o.noPurgeDelay, "no-purge-delay", false, "purge a queue, and create one again, within the 60 s in which AWS refuses it")
	f.StringVar(&o.cors, "cors", "", "`origin` whose pages may call the services from a browser, or *")
	f.StringVar(&o.dir, "dir", "", "`directory` in which the state is saved at a stop and every minute; by default nothing is saved")
	o.saveInterval = time.Minute
	o.files.flags(f)
	err = f.Parse(args)
	switch {
	case err != nil:
		return o, err
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected arguments: %q", f.Args())
	case !isRegion(o.region):
		err = errRegion(o.region)
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

func newServer(w *world) *http.Server {
	return &http.Server{Handler: w.handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout}
}

func run(ctx context.Context, out, log io.Writer, o options) error {
	l, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	url := localURL(l.Addr().(*net.TCPAddr))
	w := newWorld(o, url, log)
	defer w.close()
	if err := errors.Join(w.restore(), w.load()); err != nil {
		return errors.Join(err, l.Close())
	}
	server := newServer(w)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	end := func(err error) error {
		w.end()
		return errors.Join(err, server.Close(), w.save())
	}
	if err := w.begin(ctx); err != nil {
		w.end()
		return errors.Join(err, server.Close()) // what was saved stays
	}
	// All resources exist now. Scripts wait for this line, and containers for the health check.
	if _, err := fmt.Fprintln(out, url); err != nil {
		return end(err)
	}
	fmt.Fprint(log, leftOut(w.plan, o.template), idle(w.plan), fmt.Sprintf(greeting, l.Addr(), url, exports(url, o.region), o.region))
	sweep, save := ticker(o.ttlInterval), ticker(o.saveInterval)
	defer sweep.Stop()
	defer save.Stop()
	for {
		select {
		case err := <-served:
			return end(err)
		case <-sweep.C:
			for _, s := range w.places.Load().All() {
				s.DynamoDB.SweepTTL()
			}
		case <-save.C:
			if !w.called.Swap(false) {
				continue
			}
			if err := w.save(); err != nil {
				w.called.Store(true)
				slog.Error("localaws goes on, and saves again in a minute", "error", err)
			}
		case err := <-w.functions.failed:
			return end(err)
		case <-ctx.Done():
			return end(nil)
		}
	}
}

// greeting says how clients find the server, and the queues and tables of the flags.
const greeting = `localaws serves SQS and DynamoDB with its streams on %[1]s, Region %[4]s, account 000000000000, with any credentials:
%[3]s  aws --endpoint-url %[2]s --region %[4]s sqs list-queues  # AWS CLI 1 too
`

// localURL returns the URL for clients on this machine.
func localURL(addr *net.TCPAddr) string {
	if addr.IP.IsUnspecified() {
		return "http://127.0.0.1:" + strconv.Itoa(addr.Port)
	}
	return "http://" + addr.String()
}

// ticker returns a ticker, which never ticks for 0.
func ticker(every time.Duration) *time.Ticker {
	t := time.NewTicker(max(every, time.Nanosecond))
	if every == 0 {
		t.Stop()
	}
	return t
}
