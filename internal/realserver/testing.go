package realserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Start starts a server for the test, which ends with it. Where it cannot run, the test is skipped or fails, as EMULATORS
// says. A server takes a second or three to start: where a database or a prefix of its own is enough, use [Kind.Shared].
func (k *Kind) Start(t testing.TB, optFns ...func(*Options)) *Server {
	t.Helper()
	s, err := k.bring(mode(), optFns...)
	if err != nil {
		k.without(t, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping %s: %v", k.Name, err)
		}
	})
	return s
}

// Shared returns the server that all tests of the process share, which the first call starts. No test may kill it. The
// package's TestMain must be [Main], which ends it.
func (k *Kind) Shared(t testing.TB) *Server {
	t.Helper()
	s, err := started.get(k)
	if err != nil {
		k.without(t, err)
	}
	return s
}

// Restart starts a server that was killed, on the same files and port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.Relaunch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Main runs the tests and ends the shared servers.
func Main(m *testing.M) {
	if err := checkMode(mode()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	if err := started.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const (
	off      = "off"
	install  = "install"
	required = "required"
)

func mode() string { return os.Getenv("EMULATORS") }

// checkMode refuses a value that is a slip of the pen: taken for the default, it would skip what it meant to require.
func checkMode(m string) error {
	switch m {
	case "", off, install, required:
		return nil
	}
	return fmt.Errorf("realserver: EMULATORS=%s is neither empty nor %s nor %s nor %s", m, off, install, required)
}

// without ends a test that has no server.
func (k *Kind) without(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, errNotNamed) && (mode() == required || !errors.Is(err, errNotHere)) {
		t.Fatalf("%s cannot run: %v", k.Name, err)
	}
	t.Skipf("%s is not tested against: %v", k.Name, err)
}

// errNotHere is in the error of a server that is not installed or not wanted: a server that is there and does not start
// fails the test, whatever EMULATORS says.
var errNotHere = errors.New("realserver: not here")

// errNotNamed is in the error of a kind that cannot be installed, where the environment does not say where it is. Nothing
// requires it.
var errNotNamed = errors.New("realserver: not named")

// bringTimeout is for an installation on a slow line and the start.
const bringTimeout = 8 * time.Minute

func (k *Kind) bring(mode string, optFns ...func(*Options)) (*Server, error) {
	if err := checkMode(mode); err != nil {
		return nil, err
	}
	// Of the process, not of the test that happens to come first.
	ctx, cancel := context.WithTimeout(context.Background(), bringTimeout)
	defer cancel()
	switch {
	case mode == off:
		return nil, fmt.Errorf("%w: EMULATORS=%s", errNotHere, off)
	case k.Installed():
	case k.named() != "": // a slip of the pen; installing what it does not name would test another version
		return nil, fmt.Errorf("realserver: %s=%s is no absolute path of a program", k.variable, k.named())
	case len(k.packages) == 0:
		return nil, fmt.Errorf("%w: %s=/path/to/its/server says where it is", errNotNamed, k.variable)
	case mode == "":
		return nil, fmt.Errorf("%w: no program %s; `make emulators` installs %s on Debian", errNotHere, k.missing(), k.Name)
	default:
		if err := Install(ctx, k); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotHere, err)
		}
	}
	return k.Launch(ctx, optFns...)
}

// started are the shared servers of this process.
var started = pool{entries: map[*Kind]*entry{}}

type pool struct {
	mu      sync.Mutex
	entries map[*Kind]*entry
}

type entry struct {
	once   sync.Once
	server *Server
	err    error
}

// get returns the shared server, or why there is none: the first answer is everyone's.
func (l *pool) get(k *Kind) (*Server, error) {
	l.mu.Lock()
	x := l.entries[k]
	if x == nil {
		x = &entry{}
		l.entries[k] = x
	}
	l.mu.Unlock()
	x.once.Do(func() { x.server, x.err = k.bring(mode()) })
	return x.server, x.err
}

func (l *pool) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for k, x := range l.entries {
		if x.server == nil {
			continue
		}
		if err := x.server.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("realserver: ending %s: %w", k.Name, err))
		}
	}
	return errors.Join(errs...)
}
