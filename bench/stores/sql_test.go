//go:build unix

package stores

import (
	"context"
	"database/sql"
	"hash/fnv"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

type database struct {
	db             *sql.DB
	store          *sqlstore.Store
	update, insert string
}

const accounts = 1000

func openSQL(b *testing.B, name string) *database {
	b.Helper()
	var driver, dsn string
	var dialect sqlstore.Dialect
	d := &database{update: "UPDATE balances SET balance = balance + 1 WHERE id = ?", insert: "INSERT INTO bookings (event, account) VALUES (?, ?)"}
	switch name {
	case "PostgreSQL":
		driver, dsn, dialect = "pgx", testserver.PostgreSQL.Start(b).DSN("postgres"), sqlstore.PostgreSQL
		d.update, d.insert = "UPDATE balances SET balance = balance + 1 WHERE id = $1", "INSERT INTO bookings (event, account) VALUES ($1, $2)"
	case "MariaDB":
		driver, dsn, dialect = "mysql", testserver.MariaDB.Start(b).DSN("test")+"?interpolateParams=true", sqlstore.MySQL
	case "SQLite":
		// synchronous=FULL is the default: a commit is on disk when it returns, as with the other databases.
		driver, dialect = "sqlite", sqlstore.SQLite
		dsn = "file:" + filepath.Join(b.TempDir(), "bench.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	}
	db := must.Get(sql.Open(driver, dsn))(b)
	b.Cleanup(func() { _ = db.Close() }) // the measurement is over
	db.SetMaxOpenConns(mostHandlers + 8) // more than the handlers: see sqlstore.New
	db.SetMaxIdleConns(mostHandlers + 8)
	must.Do(b, sqlstore.Migrate(b.Context(), db, dialect))
	d.store = must.Get(sqlstore.New(db, dialect))(b)
	d.db = db
	for _, ddl := range []string{
		"CREATE TABLE balances (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE bookings (event VARCHAR(200) NOT NULL, account INTEGER NOT NULL)",
	} {
		must.Get(db.ExecContext(b.Context(), ddl))(b)
	}
	tx := must.Get(db.BeginTx(b.Context(), nil))(b)
	for i := range accounts {
		must.Get(tx.ExecContext(b.Context(), "INSERT INTO balances (id, balance) VALUES ("+strconv.Itoa(i)+", 0)"))(b)
	}
	must.Do(b, tx.Commit())
	return d
}

// book is the business transaction: a balance and an entry.
func (d *database) book(ctx context.Context, tx *sql.Tx, event string) error {
	h := fnv.New32()
	h.Write([]byte(event)) // never an error
	account := int(h.Sum32() % accounts)
	if _, err := tx.ExecContext(ctx, d.update, account); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, d.insert, event, account)
	return err
}

func (d *database) handle(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
	return d.book(ctx, tx, m.ID)
}

func message(event string) *sqsonce.Message {
	return &sqsonce.Message{
		ID: event, QueueARN: "arn:aws:sqs:us-east-1:000000000000:bench", ReceiveCount: 1,
		Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: event}},
	}
}

func keepConnections(t *http.Transport) { t.MaxIdleConnsPerHost = mostHandlers }
