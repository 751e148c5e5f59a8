package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/examples/orders"
)

// ledger has a row an account: its balance, and an entry for every booking. Neither is idempotent, on purpose: booked
// twice, an order counts twice and is seen twice.
type ledger struct {
	db      *sql.DB
	dialect sqlstore.Dialect
	kind
}

// kind is what the databases write differently.
type kind struct{ driver, entries, balance, entry string }

const (
	columns = " account VARCHAR(200) NOT NULL, event VARCHAR(200) NOT NULL)"
	upsert  = "INSERT INTO ledger_accounts (account, balance) VALUES "
	entry   = "INSERT INTO ledger_entries (account, event) VALUES "
)

var kinds = map[string]struct {
	kind
	dialect     sqlstore.Dialect
	connections int
}{
	"postgres": {kind{
		driver:  "pgx",
		entries: "position BIGSERIAL PRIMARY KEY,", entry: entry + "($1, $2)",
		balance: upsert + "($1, $2) ON CONFLICT (account) DO UPDATE SET balance = ledger_accounts.balance + excluded.balance",
	}, sqlstore.PostgreSQL, 24},
	"mariadb": {kind{
		driver:  "mysql",
		entries: "position BIGINT AUTO_INCREMENT PRIMARY KEY,", entry: entry + "(?, ?)",
		balance: upsert + "(?, ?) ON DUPLICATE KEY UPDATE balance = balance + VALUES(balance)",
	}, sqlstore.MySQL, 24},
	"sqlite": {kind{
		driver:  "sqlite",
		entries: "position INTEGER PRIMARY KEY AUTOINCREMENT,", entry: entry + "(?, ?)",
		balance: upsert + "(?, ?) ON CONFLICT (account) DO UPDATE SET balance = balance + excluded.balance",
	}, sqlstore.SQLite, 24},
}

func openLedger(name, dsn string) (*ledger, error) {
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("STORE=%s is neither postgres nor mariadb nor sqlite", name)
	}
	db, err := sql.Open(k.driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(k.connections) // above the worker's concurrency: see sqlstore.New
	db.SetMaxIdleConns(k.connections)
	return &ledger{db: db, dialect: k.dialect, kind: k.kind}, nil
}

func (l *ledger) setup(ctx context.Context) error {
	if err := sqlstore.Migrate(ctx, l.db, l.dialect); err != nil {
		return err
	}
	for _, ddl := range []string{
		"CREATE TABLE IF NOT EXISTS ledger_accounts (account VARCHAR(200) PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS ledger_entries (" + l.entries + columns,
	} {
		if _, err := l.db.ExecContext(ctx, ddl); err != nil {
			return err
		}
	}
	return nil
}

// book writes the balance first: its row's lock puts the entries of an account in order.
func (l *ledger) book(ctx context.Context, tx *sql.Tx, o orders.Order) error {
	if _, err := tx.ExecContext(ctx, l.balance, o.Account, o.Amount); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, l.entry, o.Account, o.ID)
	return err
}

// read returns every account, in one snapshot of each table.
func (l *ledger) read(ctx context.Context) (map[string]orders.Account, error) {
	accounts := map[string]orders.Account{}
	err := l.each(ctx, "SELECT account, balance FROM ledger_accounts", func(rows *sql.Rows) error {
		var name string
		var a orders.Account
		err := rows.Scan(&name, &a.Balance)
		accounts[name] = a
		return err
	})
	if err != nil {
		return nil, err
	}
	return accounts, l.each(ctx, "SELECT account, event FROM ledger_entries ORDER BY position", func(rows *sql.Rows) error {
		var name, event string
		err := rows.Scan(&name, &event)
		a := accounts[name]
		a.Entries = append(a.Entries, event)
		accounts[name] = a
		return err
	})
}

func (l *ledger) each(ctx context.Context, query string, f func(*sql.Rows) error) error {
	rows, err := l.db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
