package testserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Database is a database system whose servers can be started.
type Database struct {
	Name string

	// packages are the Debian packages of the programs.
	packages []string
	// programs must all be found. The first is the server.
	programs []string
	// variable is the environment variable that names the server's program, which is then started in place of the first of
	// programs. "": there is none.
	variable string
	// initialise fills the data folder. nil: the server does.
	initialise func(ctx context.Context, s *Server) error
	// arguments are the server's, before those of [Options].
	arguments func(s *Server) []string
	// ask returns an error unless a server that accepted the connection is ready.
	ask func(c net.Conn) error
	// dsn returns the data source name of a database on the server, as the usual Go driver reads it.
	dsn func(address, database string) string

	running shared[*Server]
}

// PostgreSQL has the superuser postgres and the database postgres.
var PostgreSQL = &Database{
	Name: "PostgreSQL", packages: []string{"postgresql-15"}, programs: []string{"postgres", "initdb"},
	initialise: func(ctx context.Context, s *Server) error {
		// Unsynced files are lost when the machine stops, and nobody needs them then.
		return s.run(ctx, "initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	},
	arguments: func(s *Server) []string {
		return []string{"-D", s.data(), "-h", Host, "-p", strconv.Itoa(s.Port),
			"-c", "unix_socket_directories=", "-c", "shared_buffers=32MB", "-c", "max_connections=300"}
	},
	ask: askPostgreSQL,
	dsn: func(address, database string) string {
		return "postgres://postgres@" + address + "/" + database + "?sslmode=disable"
	},
}

// MariaDB has the superuser test and the database test.
var MariaDB = &Database{
	// The -core packages have the programs and no service.
	Name: "MariaDB", packages: []string{"mariadb-server-core", "mariadb-client-core"},
	programs: []string{"mariadbd", "mariadb-install-db", "my_print_defaults"},
	initialise: func(ctx context.Context, s *Server) error {
		if err := writeUsers(s); err != nil {
			return err
		}
		return s.run(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+s.data(), "--auth-root-authentication-method=normal",
			"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M")
	},
	arguments: func(s *Server) []string {
		return []string{"--no-defaults", "--datadir=" + s.data(), "--bind-address=" + Host, "--port=" + strconv.Itoa(s.Port),
			"--socket=" + filepath.Join(s.folder, "socket"), "--pid-file=" + filepath.Join(s.folder, "pid"), "--init-file=" + s.initFile(),
			"--skip-name-resolve", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--max-connections=300",
			"--character-set-server=utf8mb4"}
	},
	ask: askMySQL,
	dsn: mysqlDSN,
}

// MySQL has the superuser test and the database test. Debian's releases have no package of it: TESTSERVER_MYSQL names the
// program. A program named mysqld is not looked for, since Debian's is MariaDB.
var MySQL = &Database{
	Name: "MySQL", variable: "TESTSERVER_MYSQL",
	initialise: func(ctx context.Context, s *Server) error {
		if err := writeUsers(s); err != nil {
			return err
		}
		return s.run(ctx, s.Database.program(), "--no-defaults", "--initialize-insecure", "--datadir="+s.data())
	},
	arguments: func(s *Server) []string {
		return []string{"--no-defaults", "--datadir=" + s.data(), "--bind-address=" + Host, "--port=" + strconv.Itoa(s.Port),
			"--socket=" + filepath.Join(s.folder, "socket"), "--pid-file=" + filepath.Join(s.folder, "pid"), "--init-file=" + s.initFile(),
			"--secure-file-priv=NULL", "--skip-name-resolve", "--mysqlx=OFF", "--skip-log-bin", "--performance-schema=OFF", "--innodb-buffer-pool-size=64M",
			"--innodb-redo-log-capacity=16M", "--max-connections=300"}
	},
	ask: askMySQL,
	dsn: mysqlDSN,
}

// writeUsers writes what MariaDB and MySQL execute at each start.
func writeUsers(s *Server) error {
	const users = "CREATE USER IF NOT EXISTS test@'%';\nGRANT ALL ON *.* TO test@'%' WITH GRANT OPTION;\nCREATE DATABASE IF NOT EXISTS test;\n"
	return os.WriteFile(s.initFile(), []byte(users), 0o644)
}

func mysqlDSN(address, database string) string { return "test@tcp(" + address + ")/" + database }

// Redis writes nothing to disk unless [Options] say so. TESTSERVER_REDIS names the program of another version, or of
// another server with Redis's protocol and arguments.
var Redis = &Database{
	Name: "Redis", packages: []string{"redis-server"}, programs: []string{"redis-server"}, variable: "TESTSERVER_REDIS",
	arguments: func(s *Server) []string {
		return []string{"--dir", s.data(), "--bind", Host, "--port", strconv.Itoa(s.Port), "--save", "", "--appendonly", "no", "--daemonize", "no"}
	},
	ask: askRedis,
	dsn: func(address, database string) string { return "redis://" + address + "/" + database },
}

// PgBouncer gives each transaction a connection of a PostgreSQL that may be another one than that of the transaction before.
// [Options.Config] is its section of databases.
var PgBouncer = &Database{
	Name: "PgBouncer", packages: []string{"pgbouncer"}, programs: []string{"pgbouncer"},
	initialise: func(_ context.Context, s *Server) error {
		f, err := os.OpenFile(s.config(), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "[pgbouncer]\nlisten_addr = %s\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n", Host, s.Port)
		return errors.Join(err, f.Close())
	},
	arguments: func(*Server) []string { return nil },
	ask:       askPostgreSQL,
	dsn:       PostgreSQL.dsn,
}

// databases are all. PgBouncer is the last: it needs another server.
var databases = []*Database{PostgreSQL, MariaDB, MySQL, Redis, PgBouncer}

// Databases returns every database that can be installed.
func Databases() []*Database {
	return slices.DeleteFunc(slices.Clone(databases), func(d *Database) bool { return d.packages == nil })
}

// The functions below use as much of each protocol as tells a server that is ready from one that still recovers after a
// crash, which accepts connections already. Drivers would be dependencies of the whole module.

// askPostgreSQL sends a startup message, to which a server that is ready replies with an authentication message.
func askPostgreSQL(c net.Conn) error {
	const protocol = 3 << 16
	const names = "user\x00postgres\x00database\x00postgres\x00\x00"
	message := binary.BigEndian.AppendUint32(nil, 8+uint32(len(names)))
	message = binary.BigEndian.AppendUint32(message, protocol)
	if _, err := c.Write(append(message, names...)); err != nil {
		return err
	}
	reply := make([]byte, 1)
	if _, err := c.Read(reply); err != nil {
		return err
	}
	if reply[0] != 'R' {
		return fmt.Errorf("reply to a startup message: got %q, want R", reply)
	}
	return nil
}

// askMySQL reads the greeting of MariaDB or MySQL: a packet's header of 4 bytes, then the version of the protocol.
func askMySQL(c net.Conn) error {
	greeting := make([]byte, 5)
	if _, err := io.ReadFull(c, greeting); err != nil {
		return err
	}
	if greeting[4] != 10 {
		return fmt.Errorf("greeting: got %q, want protocol version 10", greeting)
	}
	return nil
}

// askRedis sends PING, to which a server that still loads its data replies with an error.
func askRedis(c net.Conn) error {
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(reply, "+PONG") {
		return fmt.Errorf("reply to PING: got %q, want +PONG", reply)
	}
	return nil
}
