package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Options are the settings of a server.
type Options struct {
	// Args follow the arguments of this package, and override them. Default: none.
	Args []string
	// Config is the text of a configuration file, which Redis and PgBouncer read before their arguments. Default: no file.
	Config string
}

// AppendOnly makes a Redis write each command to its log and to disk before it answers.
func AppendOnly(o *Options) {
	o.Args = append(o.Args, "--appendonly", "yes", "--appendfsync", "always")
}

// Server is a running server of a database, or one that was killed and can be started again.
type Server struct {
	Database *Database
	Port     int

	options  Options
	folder   string
	reserved io.Closer // keeps the port while the server is down

	mu   sync.Mutex
	proc *process // nil while it is down
}

// Start starts a server for the test, which ends with it. Without one, the test is skipped or fails, as EMULATORS says. A
// server takes up to three seconds to start: a test that needs only a database or a key prefix of its own uses
// [Database.Shared].
func (d *Database) Start(t testing.TB, optFns ...func(*Options)) *Server {
	t.Helper()
	s, err := d.setUp(mode(), optFns...)
	if err != nil {
		unavailable(t, mode(), d.Name, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Shared returns the server that all tests of the process share, which the first call starts. No test may kill it. The
// package's TestMain must be [Main].
func (d *Database) Shared(t testing.TB) *Server {
	t.Helper()
	s, err := d.running.get(func() (*Server, error) { return d.setUp(mode()) })
	if err != nil {
		unavailable(t, mode(), d.Name, err)
	}
	return s
}

func (d *Database) setUp(mode string, optFns ...func(*Options)) (*Server, error) {
	if err := checkMode(emulatorsVariable, mode); err != nil { // the package may have a TestMain of its own
		return nil, err
	}
	// Not the context of the test: other tests may share the server.
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	switch {
	case mode == off:
		return nil, fmt.Errorf("%w: EMULATORS=%s", errMissing, off)
	case d.Installed():
	case d.named() != "": // misspelt; an installed server would be another version than the one that was meant
		return nil, fmt.Errorf("testserver: %s=%s is no absolute path of a program", d.variable, d.named())
	case len(d.packages) == 0:
		return nil, fmt.Errorf("%w: %s=/path/to/its/server names one", errNotNamed, d.variable)
	case mode == "":
		return nil, fmt.Errorf("%w: no program %s; `make emulators` installs %s on Debian", errMissing, d.missing(), d.Name)
	default:
		if err := Install(ctx, d); err != nil {
			return nil, fmt.Errorf("%w: %w", errMissing, err)
		}
	}
	return d.Launch(ctx, optFns...)
}

const (
	// startTimeout is how long a server may take to be ready, on a machine that runs other tests.
	startTimeout  = time.Minute
	startAttempts = 10
	startInterval = 100 * time.Millisecond
)

// Launch starts a server that [Server.Stop] ends. Tests call [Database.Start].
func (d *Database) Launch(ctx context.Context, optFns ...func(*Options)) (*Server, error) {
	if missing := d.missing(); missing != "" {
		return nil, fmt.Errorf("testserver: no program %s of %s found", missing, d.Name)
	}
	s := &Server{Database: d}
	for _, fn := range optFns {
		fn(&s.options)
	}
	var err error
	if s.Port, s.reserved, err = ReservePort(); err != nil {
		return nil, fmt.Errorf("testserver: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("testserver: preparing %s: %w", d.Name, err), s.Stop())
	}
	if err := s.Relaunch(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) prepare(ctx context.Context) error {
	var err error
	if s.folder, err = os.MkdirTemp("", "testserver-"); err != nil {
		return err
	}
	if err := os.Mkdir(s.data(), 0o700); err != nil {
		return err
	}
	if s.options.Config != "" {
		// A sentinel writes what it learns into its file.
		if err := os.WriteFile(s.config(), []byte(s.options.Config), 0o600); err != nil {
			return err
		}
	}
	if err := give(s.folder); err != nil {
		return err
	}
	if s.Database.initialise == nil {
		return nil
	}
	return s.Database.initialise(ctx, s)
}

// Relaunch starts a server that was killed, on the same files and port, and waits until it is ready. Tests call
// [Server.Restart].
func (s *Server) Relaunch(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return fmt.Errorf("testserver: %s is running", s.Database.Name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	var args []string
	if s.options.Config != "" {
		args = append(args, s.config())
	}
	args = slices.Concat(args, s.Database.arguments(s), s.options.Args)
	for attempt := 1; ; attempt++ {
		cmd := exec.Command(s.Database.program(), args...)
		if err := asNobody(cmd); err != nil {
			return err
		}
		p, err := startProcess(cmd, s.folder)
		if err != nil {
			return fmt.Errorf("testserver: starting %s: %w", s.Database.Name, err)
		}
		if err = p.await(ctx, s.ask); err == nil {
			s.proc = p
			return nil
		}
		p.kill()
		// A killed PostgreSQL leaves processes that end soon, and does not start before they have. What else ends a server
		// early, such as a wrong argument, does so at each attempt.
		if !errors.Is(err, errEnded) || attempt == startAttempts {
			return fmt.Errorf("testserver: starting %s: %w; its log ends:\n%s", s.Database.Name, err, logEnd(s.folder))
		}
		time.Sleep(startInterval)
	}
}

// Restart starts a server that was killed, on the same files and port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.Relaunch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ask returns an error unless the server is ready.
func (s *Server) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return err
	}
	defer c.Close() // only asked
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	return s.Database.ask(c)
}

// Kill ends the server with SIGKILL. It returns when the process is gone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
}

// Pause stops the server's process with SIGSTOP: connections stay open, and get no reply until [Server.Resume].
func (s *Server) Pause() error { return s.signal(stopSignal) }

// Resume ends a [Server.Pause].
func (s *Server) Resume() error { return s.signal(continueSignal) }

func (s *Server) signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return fmt.Errorf("testserver: %s is not running", s.Database.Name)
	}
	return s.proc.cmd.Process.Signal(sig)
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.quit()
		s.proc = nil
	}
	if err := errors.Join(os.RemoveAll(s.folder), s.reserved.Close()); err != nil {
		return fmt.Errorf("testserver: stopping %s: %w", s.Database.Name, err)
	}
	return nil
}

// run runs one of the database's programs to its end, as the server's user.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	path, err := find(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = s.folder, environment(s.folder)
	if err := asNobody(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, end(out))
	}
	return nil
}

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort(Host, strconv.Itoa(s.Port)) }

// DSN is a data source name of a database on the server: for pgx, github.com/go-sql-driver/mysql or go-redis.
func (s *Server) DSN(database string) string { return s.Database.DSNAt(s.Addr(), database) }

// DSNAt is a data source name of a database on a server at the address.
func (d *Database) DSNAt(address, database string) string { return d.dsn(address, database) }

func (s *Server) data() string     { return filepath.Join(s.folder, "data") }
func (s *Server) config() string   { return filepath.Join(s.data(), "config") }
func (s *Server) initFile() string { return filepath.Join(s.folder, "init.sql") }
