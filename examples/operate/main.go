// Command operate is the command sqsonce for a consumer that makes its keys from bodies, and keeps its records in SQLite.
package main

import (
	"context"
	"database/sql"
	"os"

	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/cli"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
)

func main() {
	cli.Main(func(o *cli.Options) {
		o.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
		o.Store = func(context.Context) (cli.Store, error) {
			db, err := sql.Open("sqlite", os.Getenv("DATABASE"))
			if err != nil {
				return nil, err
			}
			return sqlstore.New(db, sqlstore.SQLite)
		}
	})
}
