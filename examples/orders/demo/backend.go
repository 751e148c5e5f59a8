package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// backend is where the records are, and with a database the ledger too: the store that STORE names, by default DynamoDB.
// Orders and report are the same with each.
type backend struct {
	worker, function string             // commands in the folder of this executable
	publisher        []string           // command and arguments
	relay            []string           // the same; nil: events are published at once
	address          string             // host and port of the store; "": there is no outage
	noOutage         string             // why
	server           *testserver.Server // nil: none was started
	ledgerCommand    func() *exec.Cmd   // prints the ledger; nil: it is in DynamoDB
	// env returns the environment of the commands where the store is at another address.
	env func(address string) []string
}

// dynamoWorker is the command with the records in DynamoDB.
const dynamoWorker = "worker"

func startBackend(ctx context.Context, bin, dir string) (*backend, error) {
	store := os.Getenv("STORE")
	switch store {
	case "", "dynamodb":
		return &backend{worker: dynamoWorker, function: "lambda", publisher: []string{"publish"}, relay: []string{"publish", "relay"}}, nil
	case "redis":
		s, err := testserver.Redis.Launch(ctx, testserver.AppendOnly)
		if err != nil {
			return nil, err
		}
		return &backend{worker: "redisorders", function: "redisorders", publisher: []string{"publish"}, server: s, address: s.Addr(), env: func(address string) []string {
			return []string{"REDIS_URL=" + strings.Replace(s.DSN("0"), s.Addr(), address, 1)}
		}}, nil
	case "postgres":
		return startSQL(ctx, bin, store, testserver.PostgreSQL, "postgres", "")
	case "mariadb":
		return startSQL(ctx, bin, store, testserver.MariaDB, "test", "?interpolateParams=true")
	case "sqlite":
		// _txlock=immediate: a transaction that reads first and then writes cannot wait for another writer.
		file := "file:" + filepath.Join(dir, "orders.db") + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
		b := &backend{noOutage: "SQLite is a file"}
		return b.withSQL(ctx, bin, store, func(string) string { return file })
	}
	return nil, fmt.Errorf("STORE is %q: use dynamodb, postgres, mariadb, sqlite or redis", store)
}

func startSQL(ctx context.Context, bin, store string, kind *testserver.Database, database, parameters string) (*backend, error) {
	s, err := kind.Launch(ctx)
	if err != nil {
		return nil, err
	}
	b := &backend{server: s, address: s.Addr()}
	return b.withSQL(ctx, bin, store, func(address string) string {
		return strings.Replace(s.DSN(database), s.Addr(), address, 1) + parameters
	})
}

func (b *backend) withSQL(ctx context.Context, bin, store string, dsn func(address string) string) (*backend, error) {
	const command = "sqlorders"
	b.worker, b.function, b.publisher, b.relay = command, command, []string{command, "publish"}, []string{command, "relay"}
	b.env = func(address string) []string { return []string{"STORE=" + store, "DATABASE_URL=" + dsn(address)} }
	run := func(argument string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, command), argument)
		cmd.Env = append(os.Environ(), b.env(b.address)...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	b.ledgerCommand = func() *exec.Cmd { return run("ledger") }
	if err := run("setup").Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("creating the tables: %w", err), b.stop())
	}
	return b, ctx.Err()
}

// useDynamoDB makes the endpoint the store.
func (b *backend) useDynamoDB(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	b.env = func(address string) []string {
		at := *u
		at.Host = cmp.Or(address, u.Host)
		return []string{"STORE=dynamodb", "AWS_ENDPOINT_URL_DYNAMODB=" + at.String()}
	}
	if u.Scheme != "http" {
		b.noOutage = "the certificate of the endpoint is not for a proxy"
		return nil
	}
	b.address = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80"))
	return nil
}

// stop stops the server.
func (b *backend) stop() error {
	if b.server == nil {
		return nil
	}
	return b.server.Stop()
}
