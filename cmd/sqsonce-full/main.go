// Command sqsonce-full is the command sqsonce, also for records in SQL databases and Redis:
//
//	sqsonce-full --store postgres://user@host/database record ls
//
// It is a module of its own because drivers are large. See package cli for key functions and other stores.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/cli"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
)

func main() {
	cli.Main(func(o *cli.Options) { o.Name, o.StoreURL = "sqsonce-full", open })
}

const (
	connectTimeout = 10 * time.Second
	// mostConnections is what the database can give in an incident too.
	mostConnections = 4
	// prefixParameter is the one parameter of all stores: that of their tables or keys. The others are the driver's.
	prefixParameter = "prefix"
)

// openers open a store, by the scheme of its URL. They get the URL without its password and prefix.
var openers = map[string]func(u *url.URL, password, prefix string) (cli.Store, error){
	"postgres": openPostgreSQL, "postgresql": openPostgreSQL,
	"mysql": openMySQL, "mariadb": openMySQL,
	"redis": openRedis, "rediss": openRedis,
}

// open opens the store behind a URL, and connects only when it is used. A driver sees the URL's password after its parser has ended: parsers
// repeat in their errors what they cannot read.
func open(_ context.Context, u *url.URL) (cli.Store, error) {
	bare := *u
	var prefix string
	var err error
	if prefix, bare.RawQuery, err = parameters(u.RawQuery); err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	if bare.User != nil {
		bare.User = url.User(u.User.Username())
	}
	if opener := openers[u.Scheme]; opener != nil {
		return opener(&bare, password, prefix)
	}
	return nil, fmt.Errorf("%s is none of dynamodb, %s. Other stores need a command of your own: docs/operating.md#own-commands", u.Scheme, strings.Join(slices.Sorted(maps.Keys(openers)), ", "))
}

// parameters takes the prefix out of a URL's parameters. The rest stays as it is written: drivers read some without unescaping.
func parameters(query string) (prefix, rest string, err error) {
	var others []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		switch {
		case nameErr != nil || valueErr != nil:
			return "", "", errors.New("its parameters are not escaped as in URLs")
		case strings.HasSuffix(strings.ToLower(name), "password"):
			return "", "", fmt.Errorf("parameter %s: write user:password@host instead", name)
		case name == prefixParameter:
			prefix = value
		default:
			others = append(others, parameter)
		}
	}
	return prefix, strings.Join(others, "&"), nil
}

func openPostgreSQL(u *url.URL, password, prefix string) (cli.Store, error) {
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		_, problem, _ := strings.Cut(err.Error(), "`: ") // behind the whole URL
		return nil, errors.New(cmp.Or(problem, "it cannot be parsed"))
	}
	config.Password = cmp.Or(password, config.Password) // of PGPASSWORD or a password file
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	return openSQL(stdlib.OpenDB(*config), sqlstore.PostgreSQL, prefix)
}

func openMySQL(u *url.URL, password, prefix string) (cli.Store, error) {
	database := strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || database == "" {
		return nil, errors.New("it has no host or no database: write mysql://user@host/database")
	}
	// The parser needs the address too: it is the name that TLS checks.
	config, err := mysql.ParseDSN("tcp(" + net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")) + ")/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	config.User, config.Passwd, config.DBName = u.User.Username(), password, database
	config.Timeout, config.InterpolateParams, config.Logger = cmp.Or(config.Timeout, connectTimeout), true, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return openSQL(sql.OpenDB(connector), sqlstore.MySQL, prefix)
}

func openSQL(db *sql.DB, dialect sqlstore.Dialect, prefix string) (cli.Store, error) {
	db.SetMaxOpenConns(mostConnections)
	if prefix != "" {
		dialect = dialect.WithPrefix(prefix)
	}
	return sqlstore.New(db, dialect)
}

func openRedis(u *url.URL, password, prefix string) (cli.Store, error) {
	logging.Disable() // what matters is in the errors
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	options.Password, options.ContextTimeoutEnabled, options.PoolSize = password, true, mostConnections
	return redisstore.New(redis.NewClient(options), func(o *redisstore.Options) {
		o.Prefix = cmp.Or(prefix, o.Prefix)
		o.Volatile = true // how durable the server is was the consumer's question
	})
}
