package testserver

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Main is the TestMain of a package that shares servers between its tests ([Emulator.Shared], [Database.Shared]): it runs
// the tests and stops the servers.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to do. It returns the exit code.
func Run(m *testing.M) int {
	if err := checkMode(emulatorsVariable, mode()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		code = max(code, 1)
	}
	return code
}

const emulatorsVariable = "EMULATORS"

// Values of EMULATORS, and of BROWSER. "" is the default.
const (
	off      = "off"
	install  = "install"
	required = "required"
)

func mode() string { return os.Getenv(emulatorsVariable) }

// checkMode refuses a misspelt value: taken for the default, it would skip what it meant to require.
func checkMode(variable, m string) error {
	switch m {
	case "", off, install, required:
		return nil
	}
	return fmt.Errorf("testserver: %s=%s is neither empty nor %s nor %s nor %s", variable, m, off, install, required)
}

var (
	// errMissing is in the error of a server that is not installed, or not wanted.
	errMissing = errors.New("testserver: not available")
	// errNotNamed is in the error of a database that only the environment can name, and does not. Nothing requires it.
	errNotNamed = errors.New("testserver: not named")
)

// setupTimeout is for the installation of one server over a slow network, and its start.
const setupTimeout = 8 * time.Minute

// unavailable ends a test whose server is not there: it is skipped, or fails where the server is required or was found
// and did not start.
func unavailable(t testing.TB, mode, server string, err error) {
	t.Helper()
	if !errors.Is(err, errNotNamed) && (mode == required || !errors.Is(err, errMissing)) {
		t.Fatalf("%s cannot run: %v", server, err)
	}
	t.Skipf("%s is not tested against: %v", server, err)
}

// shared is a server that all tests of the process share. The zero value is one that has not been started.
type shared[S interface{ Stop() error }] struct {
	once   sync.Once
	server S
	err    error
}

// get returns the server, which the first call starts, or why it could not be started.
func (s *shared[S]) get(start func() (S, error)) (S, error) {
	s.once.Do(func() {
		if s.server, s.err = start(); s.err == nil {
			started.add(s.server.Stop)
		}
	})
	return s.server, s.err
}

// started is the shared servers of this process.
var started stops

type stops struct {
	mu  sync.Mutex
	all []func() error
}

func (s *stops) add(stop func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, stop)
}

func stopShared() error {
	started.mu.Lock()
	defer started.mu.Unlock()
	var errs []error
	for _, stop := range started.all {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}
