package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/sqloutbox"
	"github.com/sqsonce/sqsonce/examples/orders"
)

// ledger has a row for each account, with its balance, and a row for each booking. Neither is idempotent, on purpose: an
// order that is booked twice counts twice, and its entry shows it.
type ledger struct {
	db *sql.DB
	database
}

// database is what differs between the databases.
type database struct {
	driver     string
	dialect    sqlstore.Dialect
	position   string // column that numbers the bookings
	addBalance string
	addEntry   string
	countOrder string
	addOrder   string
}

var databases = map[string]database{
	"postgres": {
		driver: "pgx", dialect: sqlstore.PostgreSQL,
		position: "position BIGSERIAL PRIMARY KEY",
		addBalance: "INSERT INTO ledger_accounts (account, balance) VALUES ($1, $2) " +
			"ON CONFLICT (account) DO UPDATE SET balance = ledger_accounts.balance + excluded.balance",
		addEntry:   "INSERT INTO ledger_entries (account, event) VALUES ($1, $2)",
		countOrder: "SELECT COUNT(*) FROM orders WHERE id = $1",
		addOrder:   "INSERT INTO orders (id, account, body) VALUES ($1, $2, $3)",
	},
	"mariadb": {
		driver: "mysql", dialect: sqlstore.MySQL,
		position: "position BIGINT AUTO_INCREMENT PRIMARY KEY",
		addBalance: "INSERT INTO ledger_accounts (account, balance) VALUES (?, ?) " +
			"ON DUPLICATE KEY UPDATE balance = balance + VALUES(balance)",
		addEntry:   "INSERT INTO ledger_entries (account, event) VALUES (?, ?)",
		countOrder: "SELECT COUNT(*) FROM orders WHERE id = ?",
		addOrder:   "INSERT INTO orders (id, account, body) VALUES (?, ?, ?)",
	},
	"sqlite": {
		driver: "sqlite", dialect: sqlstore.SQLite,
		position: "position INTEGER PRIMARY KEY AUTOINCREMENT",
		addBalance: "INSERT INTO ledger_accounts (account, balance) VALUES (?, ?) " +
			"ON CONFLICT (account) DO UPDATE SET balance = balance + excluded.balance",
		addEntry:   "INSERT INTO ledger_entries (account, event) VALUES (?, ?)",
		countOrder: "SELECT COUNT(*) FROM orders WHERE id = ?",
		addOrder:   "INSERT INTO orders (id, account, body) VALUES (?, ?, ?)",
	},
}

// connections is more than the worker's concurrency: see sqlstore.New.
const connections = 24

func openLedger(name, dsn string) (*ledger, error) {
	d, ok := databases[name]
	if !ok {
		return nil, fmt.Errorf("STORE is %q: use postgres, mariadb or sqlite", name)
	}
	db, err := sql.Open(d.driver, dsn)
	if err != nil {
		return nil, err
	}
	l := &ledger{db: db, database: d}
	l.limit(connections)
	return l, nil
}

// limit limits the connections: the demo runs fourteen processes at one server.
func (l *ledger) limit(n int) {
	l.db.SetMaxOpenConns(n)
	l.db.SetMaxIdleConns(n)
}

// setup creates the tables, unless they exist.
func (l *ledger) setup(ctx context.Context) error {
	if err := sqlstore.Migrate(ctx, l.db, l.dialect); err != nil {
		return err
	}
	if err := sqloutbox.Migrate(ctx, l.db, l.dialect); err != nil {
		return err
	}
	for _, ddl := range []string{
		"CREATE TABLE IF NOT EXISTS orders (id VARCHAR(200) PRIMARY KEY, account VARCHAR(200) NOT NULL, body TEXT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS ledger_accounts (account VARCHAR(200) PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS ledger_entries (" + l.position + ", account VARCHAR(200) NOT NULL, event VARCHAR(200) NOT NULL)",
	} {
		if _, err := l.db.ExecContext(ctx, ddl); err != nil {
			return err
		}
	}
	return nil
}

// book writes the balance first: the lock on its row keeps the entries of an account in order.
func (l *ledger) book(ctx context.Context, tx *sql.Tx, o orders.Order) error {
	if _, err := tx.ExecContext(ctx, l.addBalance, o.Account, o.Amount); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, l.addEntry, o.Account, o.ID)
	return err
}

// read returns every account, by name. The two tables are read one after the other.
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
