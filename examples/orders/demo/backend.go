package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// backend is where the records are, and with a database the ledger too: the store that STORE names, by default DynamoDB.
// Orders and report are the same with each.
type backend struct {
	worker, function string             // commands in the folder of this executable
	env              []string           // of these commands
	server           *testserver.Server // nil: none was started
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
		// _txlock=immediate: a transaction that reads first and then writes cannot wait for another writer.
		file := "file:" + filepath.Join(dir, "orders.db") + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
		return newSQL(ctx, bin, store, nil, file)
	}
	return nil, fmt.Errorf("STORE is %q: use dynamodb, postgres, mariadb, sqlite or redis", store)
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
		return nil, errors.Join(fmt.Errorf("creating the tables: %w", err), b.stop())
	}
	return b, ctx.Err()
}

// stop stops the server.
func (b *backend) stop() error {
	if b.server == nil {
		return nil
	}
	return b.server.Stop()
}
