// Package realserver starts the databases that stores are tested and measured against: PostgreSQL, MariaDB and Redis, as
// the operating system's packages install them, without Docker and without the system's own service.
//
// A server has its files in a temporary folder and listens on a port of the loopback interface alone. It ends with the
// test, also where the test's process is killed and cannot clean up. [Server.Kill] ends it with SIGKILL, and
// [Server.Restart] starts it again on the same files and port, which is what a crash looks like to a client. SIGKILL
// loses what a process holds in memory, not what it has written to the operating system: a power failure is not tested.
//
// Nobody needs a password, and the superuser is open to every process of the machine: for tests only.
//
// Other servers than the Debian release's are started where the environment names a program by its absolute path:
// REALSERVER_MYSQL for [MySQL], which the release does not have, and REALSERVER_REDIS for another Redis, or a Valkey, in
// place of the installed one. [Unpack], or the command install with -unpack, brings such a server. Nothing requires one:
// the archive keeps no version for good.
//
// The environment variable EMULATORS says what happens where a server is missing, as for emulators of AWS:
//
//	EMULATORS=          the test is skipped and says what is missing and how to get it
//	EMULATORS=off       the test is skipped, also where the server is installed
//	EMULATORS=install   it is installed, by root on Debian; the test is skipped if that does not work
//	EMULATORS=required  it is installed, by root on Debian; the test fails if that does not work
package realserver
