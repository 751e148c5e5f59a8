// Command incident stages what an operator finds at three in the morning, for docs/operating.md: SQS and DynamoDB in memory on one
// port, a worker, and
//
//   - 400 orders in the dead-letter queue, of an article that the external system does not know: one class;
//   - one order whose worker was killed at its last receive;
//   - a table of records without TTL;
//   - beside the worker a function whose event source mapping does not report batch item failures.
//
// It prints a line when all of it is there, and runs until SIGTERM or SIGINT. The worker is the command worker beside this one.
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
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "127.0.0.1:4566", "`address` of SQS, DynamoDB and Lambda")
	flag.StringVar(&o.status, "status", "127.0.0.1:8080", "`address` at which the worker says how it is")
	flag.StringVar(&o.dir, "dir", "incident", "`folder` of the worker's log, and of the files that stand for the external system")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		slog.Error("incident ended", "error", err)
		os.Exit(1)
	}
}

type options struct{ addr, status, dir string }

// Settings of the worker that make the hour short. They are those of nobody's production.
const (
	visibility = 5 * time.Second
	lease      = 5 * time.Second
)

func run(ctx context.Context, o options) error {
	if err := errors.Join(os.RemoveAll(filepath.Join(o.dir, "calls")), os.MkdirAll(o.dir, 0o755)); err != nil {
		return err
	}
	url, closeServices, err := serve(o.addr)
	if err != nil {
		return err
	}
	defer closeServices()
	d, err := deploy(ctx, url)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.dir, "unknown-articles"), []byte(article+"\n"), 0o644); err != nil {
		return err
	}
	if err := d.crash(ctx, o); err != nil {
		return fmt.Errorf("staging the crash: %w", err)
	}
	w, err := d.startWorker(o, o.status)
	if err != nil {
		return err
	}
	defer w.stop()
	if err := d.poison(ctx); err != nil {
		return fmt.Errorf("staging the poisoned orders: %w", err)
	}
	if _, err := fmt.Printf("%d messages are in %s\n", poisoned+1, deadLetters); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-w.ended:
		return fmt.Errorf("the worker ended: see %s", w.log)
	}
}

// deny answers for CloudWatch, and by the query protocol for STS and IAM: whoever looks at night may not do everything.
// https://smithy.io/2.0/additional-specs/protocols/smithy-rpc-v2.html
func deny(w http.ResponseWriter, r *http.Request) {
	kind, body := "text/xml", "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>denied</Message></Error></ErrorResponse>"
	if protocol := r.Header.Get("Smithy-Protocol"); protocol != "" {
		w.Header().Set("Smithy-Protocol", protocol)
		kind, body = "application/cbor", "\xa1\x66__type\x6cAccessDenied" // {"__type": "AccessDenied"}
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, body) // an error says that the client has gone
}

// serve serves the services until they are closed.
func serve(addr string) (url string, closeAll func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	q := memsqs.New(func(m *memsqs.Options) { m.OfRequest, m.NoRecord = true, true })
	d := memdynamodb.New(func(o *memdynamodb.Options) { o.NoRecord = true })
	aws, function := localstack.Handler(q, d), newFunction()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/20"): // the version of Lambda's API
			function.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.Header.Get("X-Amz-Target") == "":
			deny(w, r)
		default:
			aws.ServeHTTP(w, r)
		}
	})}
	go func() { _ = server.Serve(l) }() // it ends with the process
	return "http://" + l.Addr().String(), func() {
		_ = server.Close()
		q.Close()
		d.Close()
	}, nil
}
