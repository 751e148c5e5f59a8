package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// backend is where the records are, and with a database the ledger too: what STORE names, DynamoDB by default. Whatever it
// is, the same orders go the same way, and the same verdict is passed on them.
type backend struct {
	worker, function string             // the commands beside this executable
	env              []string           // theirs
	server           *testserver.Server // nil where nothing was started
	ledgerCommand    func() *exec.Cmd   // prints the ledger; nil: it is in DynamoDB
}

func startBackend(ctx context.Context, bin, dir string) (*backend, error) {
	store := os.Getenv("STORE")
	switch store {
	case "", "dynamodb":
		return &backend{worker: "worker", function: "lambda"}, nil
	case "redis":
		s, err := testserver.Redis.Launch(ctx, testserver.AppendOnly)
		if err != nil {
			return nil, err
		}
		return &backend{worker: "redisorders", function: "redisorders", server: s, env: []string{"REDIS_URL=" + s.DSN("0")}}, nil
	case "postgres":
		return startSQL(ctx, bin, store, testserver.PostgreSQL, "postgres", "")
	case "mariadb":
		return startSQL(ctx, bin, store, testserver.MariaDB, "test", "?interpolateParams=true")
	case "sqlite":
		// A transaction that begins as a reader and then writes cannot wait for another writer: all begin as writers.
		file := "file:" + filepath.Join(dir, "orders.db") + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
		return newSQL(ctx, bin, store, nil, file)
	}
	return nil, fmt.Errorf("STORE=%s is neither dynamodb nor postgres nor mariadb nor sqlite nor redis", store)
}

func startSQL(ctx context.Context, bin, store string, kind *testserver.Database, database, parameters string) (*backend, error) {
	s, err := kind.Launch(ctx)
	if err != nil {
		return nil, err
	}
	return newSQL(ctx, bin, store, s, s.DSN(database)+parameters)
}

func newSQL(ctx context.Context, bin, store string, s *testserver.Server, dsn string) (*backend, error) {
	const command = "sqlorders"
	b := &backend{worker: command, function: command, server: s, env: []string{"STORE=" + store, "DATABASE_URL=" + dsn}}
	run := func(argument string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, command), argument)
		cmd.Env = append(os.Environ(), b.env...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	b.ledgerCommand = func() *exec.Cmd { return run("ledger") }
	if err := run("setup").Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("making the tables: %w", err), b.stop())
	}
	return b, ctx.Err()
}

// stop ends the server.
func (b *backend) stop() error {
	if b.server == nil {
		return nil
	}
	return b.server.Stop()
}

// ledger is what is booked.
func (s *stack) ledger(ctx context.Context) (map[string]orders.Account, error) {
	if s.backend.ledgerCommand == nil {
		return orders.ReadLedger(ctx, s.DynamoDB, s.names.ledger)
	}
	text, err := s.backend.ledgerCommand().Output()
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	accounts := map[string]orders.Account{}
	return accounts, json.Unmarshal(text, &accounts)
}
