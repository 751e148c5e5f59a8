// Package testserver installs and starts the servers that tests and benchmarks run against, without Docker:
//
//   - an [Emulator] of SQS or DynamoDB that others wrote. The in-memory services are compared with emulators: they share
//     no code, so an emulator does not share our misreadings of AWS's text.
//   - a [Database], or the pooler [PgBouncer]. [Server.Kill] ends its server with SIGKILL, and [Server.Restart]
//     starts it again on the same files and port, which is what a crash looks like to a client. SIGKILL loses what a
//     process has in memory, not what it has written to the operating system: a power failure is not tested.
//   - stubs of servers, for their errors: [Serve], [Refusals].
//   - packages of npm and PyPI, for what is compared with programs written for Node and Python: [InstallNode], [Package].
//   - [Prometheus], for what reads metrics: [StartPrometheus], [Promtool].
//   - a browser, for pages: [Browse].
//
// A server has its files in a temporary folder and listens on the loopback interface only. It ends with the test process,
// also when that process is killed and cannot clean up. Nobody needs a password, and the superuser of a database is open
// to every process of the machine: for tests only.
//
// Emulators, npm packages and Prometheus are installed at exact versions, below the user's cache folder. Databases and the
// browser are what the operating system's packages install, without the system's own service.
// `go run ./internal/testserver/install` installs all of them.
//
// # Missing servers
//
// The environment variable EMULATORS says what happens when a server is not installed:
//
//	EMULATORS=          the test is skipped and says what is missing and how to install it
//	EMULATORS=off       the test is skipped, also when the server is installed
//	EMULATORS=install   the server is installed; the test is skipped if that fails
//	EMULATORS=required  the server is installed; the test fails if that fails
//
// For a browser the variable is BROWSER, with the same values.
//
// Only root on Debian can install a database or a browser. A server that is installed and does not start fails the test in
// every mode but off.
//
// # Other versions of databases
//
// TESTSERVER_MYSQL names the program of [MySQL], which Debian's releases do not have, by its absolute path.
// TESTSERVER_REDIS names another Redis, or a Valkey, that is started in place of the installed one. [Unpack] downloads such
// a server. EMULATORS=required does not require one: Debian's archive keeps no version for good.
package testserver
