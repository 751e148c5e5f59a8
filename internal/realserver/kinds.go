package realserver

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Kind is a database of which servers can be started.
type Kind struct {
	// Name is the database's own.
	Name string

	// packages of Debian hold the programs.
	packages []string
	// programs must all be found; the first is the server.
	programs []string
	// variable of the environment names the server's program in place of the first that is found: another version. Empty:
	// nothing does.
	variable string
	// initialise fills the data folder. nil: the server does that itself.
	initialise func(ctx context.Context, s *Server) error
	// arguments of the server, before those of [Options].
	arguments func(s *Server) []string
	// ask reports whether a server that took the connection is ready.
	ask func(c net.Conn) error
	// dsn is a data source name for a database on the server, as the usual Go driver reads it.
	dsn func(address, database string) string
}

// PostgreSQL has the superuser postgres and the database postgres.
var PostgreSQL = &Kind{
	Name: "PostgreSQL", packages: []string{"postgresql-15"}, programs: []string{"postgres", "initdb"},
	initialise: func(ctx context.Context, s *Server) error {
		// What is not synced here is lost only with the machine, and the folder with it.
		return s.run(ctx, "initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	},
	arguments: func(s *Server) []string {
		return []string{"-D", s.data(), "-h", Host, "-p", strconv.Itoa(s.Port),
			"-c", "unix_socket_directories=", "-c", "shared_buffers=32MB", "-c", "max_connections=200"}
	},
	ask: askPostgreSQL,
	dsn: func(address, database string) string {
		return "postgres://postgres@" + address + "/" + database + "?sslmode=disable"
	},
}

// MariaDB has the superuser test and the database test.
var MariaDB = &Kind{
	// The -core packages have the programs and no service.
	Name: "MariaDB", packages: []string{"mariadb-server-core", "mariadb-client-core"}, programs: []string{"mariadbd", "mariadb-install-db", "my_print_defaults"},
	initialise: func(ctx context.Context, s *Server) error {
		if err := writeUsers(s); err != nil {
			return err
		}
		return s.run(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+s.data(), "--auth-root-authentication-method=normal",
			"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M")
	},
	arguments: func(s *Server) []string {
		return []string{"--no-defaults", "--datadir=" + s.data(), "--bind-address=" + Host, "--port=" + strconv.Itoa(s.Port),
			"--socket=" + filepath.Join(s.scratch, "socket"), "--pid-file=" + filepath.Join(s.scratch, "pid"), "--init-file=" + s.initFile(),
			"--skip-name-resolve", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--max-connections=200",
			"--character-set-server=utf8mb4"}
	},
	ask: askMySQL,
	dsn: mysqlDSN,
}

// MySQL has the superuser test and the database test. Debian's releases have no package of it: it is tested against where
// REALSERVER_MYSQL names the program. A program of the name mysqld is MariaDB's on Debian and is not looked for.
var MySQL = &Kind{
	Name: "MySQL", variable: "REALSERVER_MYSQL",
	initialise: func(ctx context.Context, s *Server) error {
		if err := writeUsers(s); err != nil {
			return err
		}
		return s.run(ctx, s.Kind.program(), "--no-defaults", "--initialize-insecure", "--datadir="+s.data())
	},
	arguments: func(s *Server) []string {
		return []string{"--no-defaults", "--datadir=" + s.data(), "--bind-address=" + Host, "--port=" + strconv.Itoa(s.Port),
			"--socket=" + filepath.Join(s.scratch, "socket"), "--pid-file=" + filepath.Join(s.scratch, "pid"), "--init-file=" + s.initFile(),
			"--secure-file-priv=NULL", "--skip-name-resolve", "--mysqlx=OFF", "--skip-log-bin", "--performance-schema=OFF", "--innodb-buffer-pool-size=64M",
			"--innodb-redo-log-capacity=16M", "--max-connections=200"}
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

// Redis keeps nothing on disk unless [Options] say so. REALSERVER_REDIS names the program of another version, or of another
// server with Redis's protocol and arguments.
var Redis = &Kind{
	Name: "Redis", packages: []string{"redis-server"}, programs: []string{"redis-server"}, variable: "REALSERVER_REDIS",
	arguments: func(s *Server) []string {
		return []string{"--dir", s.data(), "--bind", Host, "--port", strconv.Itoa(s.Port), "--save", "", "--appendonly", "no", "--daemonize", "no"}
	},
	ask: askRedis,
	dsn: func(address, database string) string { return "redis://" + address + "/" + database },
}

// All returns every kind that can be installed.
func All() []*Kind { return []*Kind{PostgreSQL, MariaDB, Redis} }
