package realserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Host is where every server listens.
const Host = "127.0.0.1"

// Options are the settings of a server.
type Options struct {
	// Args are given to the server after this package's own, which they override. Default: none.
	Args []string
	// Config is the text of a configuration file, which Redis reads before its arguments. Default: no file.
	Config string
}

// AppendOnly makes a Redis write each command to its log and to disk before it answers.
func AppendOnly(o *Options) {
	o.Args = append(o.Args, "--appendonly", "yes", "--appendfsync", "always")
}

// Server is a running server, or one that was killed and can be started again.
type Server struct {
	Kind *Kind
	Port int

	options  Options
	scratch  string
	reserved io.Closer // holds the port while the server is down

	mu   sync.Mutex
	proc *process // nil while it is down
}

const (
	// startTimeout is for a machine that is busy with others.
	startTimeout  = time.Minute
	startAttempts = 10
	startAgain    = 100 * time.Millisecond
)

// Launch starts a server that [Server.Stop] ends. Tests call [Kind.Start].
func (k *Kind) Launch(ctx context.Context, optFns ...func(*Options)) (*Server, error) {
	if missing := k.missing(); missing != "" {
		return nil, fmt.Errorf("realserver: %s has no program %s here", k.Name, missing)
	}
	s := &Server{Kind: k}
	for _, fn := range optFns {
		fn(&s.options)
	}
	var err error
	if s.Port, s.reserved, err = reservePort(); err != nil {
		return nil, fmt.Errorf("realserver: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("realserver: preparing %s: %w", k.Name, err), s.Stop())
	}
	if err := s.Relaunch(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) prepare(ctx context.Context) error {
	var err error
	if s.scratch, err = os.MkdirTemp("", "realserver-"); err != nil {
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
	if err := give(s.scratch); err != nil {
		return err
	}
	if s.Kind.initialise == nil {
		return nil
	}
	return s.Kind.initialise(ctx, s)
}

// Relaunch starts a server that was killed, on the same files and port, and waits until it is ready. Tests call
// [Server.Restart].
func (s *Server) Relaunch(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return fmt.Errorf("realserver: %s is running", s.Kind.Name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	var args []string
	if s.options.Config != "" {
		args = append(args, s.config())
	}
	args = slices.Concat(args, s.Kind.arguments(s), s.options.Args)
	for attempt := 1; ; attempt++ {
		p, err := s.spawn(s.Kind.program(), args...)
		if err != nil {
			return fmt.Errorf("realserver: starting %s: %w", s.Kind.Name, err)
		}
		if err = p.await(ctx, s.ask); err == nil {
			s.proc = p
			return nil
		}
		p.kill()
		// A killed PostgreSQL leaves processes that end soon, and refuses to start before. Whatever else ends a server
		// early, a wrong argument for one, is not healed by time: a few attempts tell.
		if !errors.Is(err, errEnded) || attempt == startAttempts {
			return fmt.Errorf("realserver: starting %s: %w; its log ends:\n%s", s.Kind.Name, err, tail(s.logFile()))
		}
		time.Sleep(startAgain)
	}
}

func (s *Server) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return err
	}
	defer c.Close() // what it would say was said
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	return s.Kind.ask(c)
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

// Pause stops the server's process where it is: connections stay open and are not answered. [Server.Resume] goes on.
func (s *Server) Pause() error { return s.signal(stopSignal) }

// Resume ends a [Server.Pause].
func (s *Server) Resume() error { return s.signal(continueSignal) }

func (s *Server) signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return fmt.Errorf("realserver: %s is not running", s.Kind.Name)
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
	err := os.RemoveAll(s.scratch)
	return errors.Join(err, s.reserved.Close())
}

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort(Host, strconv.Itoa(s.Port)) }

// DSN is a data source name of a database on the server: for pgx, github.com/go-sql-driver/mysql or go-redis.
func (s *Server) DSN(database string) string { return s.Kind.dsn(s.Addr(), database) }

func (s *Server) data() string     { return filepath.Join(s.scratch, "data") }
func (s *Server) config() string   { return filepath.Join(s.data(), "config") }
func (s *Server) initFile() string { return filepath.Join(s.scratch, "init.sql") }
func (s *Server) logFile() string  { return filepath.Join(s.scratch, "log") }
