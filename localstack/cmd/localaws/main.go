// Command localaws serves an in-memory SQS and DynamoDB on one port, for any AWS client in any language:
//
//	localaws -queues orders,orders.fifo -tables dedup
//	aws --endpoint-url http://127.0.0.1:4566 sqs receive-message ...
//
// It stores nothing on disk. Each queue gets a dead-letter queue, Name-dlq, for messages received five times. Each table is
// an idempotency table: string key "id", TTL attribute "expiration".
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
	"strings"
	"syscall"

	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:4566", "address to listen on")
	queues := flag.String("queues", "", "queues to create, separated by commas")
	tables := flag.String("tables", "", "idempotency tables to create, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *addr, list(*queues), list(*tables)); err != nil {
		slog.Error("localaws ended", "error", err)
		os.Exit(1)
	}
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func run(ctx context.Context, out io.Writer, addr string, queues, tables []string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String()
	q, d := memsqs.New(func(o *memsqs.Options) { o.BaseURL = url }), memdynamodb.New()
	defer q.Close()
	defer d.Close()
	server := &http.Server{Handler: localstack.Handler(q, d)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	if err := create(ctx, url, queues, tables); err != nil {
		return errors.Join(err, server.Close())
	}
	// All resources exist now. Scripts wait for this line.
	if _, err := fmt.Fprintln(out, url); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return server.Close()
	}
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
